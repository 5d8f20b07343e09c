"""Long computations: parallel execution and progress display."""
