"""What the stages hand on: findings, pins, logs, clusters. Frozen values that every room above may use."""
