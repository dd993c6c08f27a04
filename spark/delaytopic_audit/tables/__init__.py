"""Tables: verdicts made of rows, DataFrame in, DataFrame out."""
