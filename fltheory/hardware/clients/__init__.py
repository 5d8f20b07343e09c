"""The Clients contract in torch: on any module and loss, on quadratics, and one client alone."""
