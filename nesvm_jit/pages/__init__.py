"""Pictures of runs: documents of plain numbers, drawn by matplotlib and put on HTML pages."""
