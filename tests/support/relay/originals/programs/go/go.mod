module originals

go 1.24
