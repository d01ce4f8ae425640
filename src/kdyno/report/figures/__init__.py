"""The plots of the HTML report, one file for each. Texts from a guest are escaped: plotly reads some HTML in labels."""
