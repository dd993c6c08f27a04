"""The worth of each rule of scaling, in simulated days."""
