"""FedAR (Jiang et al.): its statements, as far as the text at hand says them."""
