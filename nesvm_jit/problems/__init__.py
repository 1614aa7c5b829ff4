"""Models on data: values, gradients, steps, kernel matrices, and the certificate of all of them."""
