"""The error of FedAU's online weights: exact, enclosed and sampled."""
