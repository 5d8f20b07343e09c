"""FedAU (Wang and Ji): its statements, as printed and as derived."""
