"""The error of FedAU's online weights: exactly, enclosed and sampled."""
