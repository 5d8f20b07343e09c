"""The Clients interface in torch, for any module and loss, and a single client."""
