"""What changes another algorithm: schedules, projections, averages, momentum, a warm start."""
