"""What maintainers run: tables, scores, benchmarks, planted faults, ground truth. compatcheck imports none of it."""
