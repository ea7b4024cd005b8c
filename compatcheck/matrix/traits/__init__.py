"""One unit per computed trait: ``find(environment, table) -> TraitVerdict``."""
