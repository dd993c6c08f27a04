"""From rows to verdicts: DataFrame in, DataFrame out."""
