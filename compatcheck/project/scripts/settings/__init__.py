"""What the calls of a training script say, one file per library or kind.

A unit has ``read(program)``, which returns the `Configuration` that its calls give. Where two units state one fact,
that of the higher ``LAYER`` (1 where a unit has none) counts.
"""
