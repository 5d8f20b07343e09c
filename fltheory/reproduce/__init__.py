"""What makes this project's own pages: papers' experiments, findings, power, biases, drift."""
