"""Plain NumPy twins of every kernel. Imports nothing of ours."""

import re

import numpy as np

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
HIGHEST_INDEX = 2**32 - 2


def dense(X):
    """Any matrix as a float64 array."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def project_hinge(r, s, mu):
    return np.median(np.stack([r / (mu * s), np.zeros_like(r), np.ones_like(r)]), axis=0)


def project_l1(w, mu):
    return np.median(np.stack([w / mu, -np.ones_like(w), np.ones_like(w)]), axis=0)


def margins(X, w, b):
    return dense(X) @ w + b


def sweep(X, y, w, b, c, s, mu, loss):
    """u, smoothed loss, loss, Σ c u, ascent direction, its bias part."""
    r = 1 - y * margins(X, w, b)
    if loss == "hinge":
        u = project_hinge(r, s, mu)
        smoothed, true = u * r - mu * s / 2 * u**2, np.maximum(0, r)
    else:
        u, smoothed, true = 2 * r, r**2, r**2
    a = c * y * u
    return u, np.sum(c * smoothed), np.sum(c * true), np.sum(c * u), dense(X).T @ a, np.sum(a)


def slope(f, m, y, t, c, s, mu, loss):
    """The first two derivatives by t of the (smoothed) loss at margins f + t m."""
    r = 1 - y * (f + t * m)
    if loss == "hinge":
        inside = (r > 0) & (r < mu * s)
        return -np.sum(c * y * m * project_hinge(r, s, mu)), np.sum((c * m**2 / (mu * s))[inside])
    return -np.sum(2 * c * y * m * r), np.sum(2 * c * m**2)


def dual_epoch(X, y, alpha, lower, upper, d, order, share, w, b):
    """One step of every row in this order: α, w, b and the residuals seen."""
    X, alpha, w, seen = dense(X), alpha.copy(), w.copy(), np.zeros(len(y))
    for i in order:
        seen[i] = 1 - y[i] * (X[i] @ w + b)
        curvature = X[i] @ X[i] + d[i] + share
        best = alpha[i] + (seen[i] - d[i] * alpha[i]) / (curvature if curvature > 0 else 1.0)
        step = (np.clip(best, lower[i], upper[i]) - alpha[i]) * y[i]
        alpha[i] += step * y[i]
        w += step * X[i]
        b += share * step
    return alpha, w, b, seen


def accumulate(X, a):
    return dense(X).T @ a


def row_norms(X):
    return np.linalg.norm(dense(X), axis=1), np.abs(dense(X)).max(axis=1, initial=0)


def hessian(X, d):
    return dense(X).T @ np.diag(d) @ dense(X)


def gram(X, Z, kernel, gamma, coef0, degree):
    X, Z = dense(X), dense(Z)
    if kernel == "poly":
        return (gamma * X @ Z.T + coef0) ** degree
    return np.exp(-gamma * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


def poly_features(X, gamma, coef0):
    """Φ with ΦΦᵀ = (γXXᵀ + coef0)²."""
    squares = (X[:, :, None] * X[:, None, :]).reshape(len(X), -1)
    return np.hstack([np.full((len(X), 1), coef0), np.sqrt(2 * gamma * coef0) * X, gamma * squares])


def number(token):
    """The finite number a token spells, else ValueError."""
    if not NUMBER.fullmatch(token):
        raise ValueError(token)
    value = float(token)
    if not np.isfinite(value):
        raise ValueError(token)
    return value


def read_libsvm(text, base=1, n_features=None):
    """Labels, and per row a list of (column, value); ValueError where a line is wrong."""
    labels, rows = [], []
    for line in text.split(b"\n"):
        tokens = re.split(rb"[ \t\r]+", line.split(b"#")[0].strip(b" \t\r"))
        if tokens == [b""]:
            continue
        labels.append(number(tokens.pop(0)))
        query = tokens and tokens[0].startswith(b"qid")
        if query and not re.fullmatch(rb"qid:\d+", tokens.pop(0)):
            raise ValueError(line)
        row, previous = [], -1
        for token in tokens:
            cell = re.fullmatch(rb"(\d{1,19}):(.*)", token, re.DOTALL)
            if not cell or int(cell[1]) > HIGHEST_INDEX:
                raise ValueError(token)
            column = int(cell[1]) - base
            if column <= previous or (n_features is not None and column >= n_features):
                raise ValueError(token)
            row.append((column, number(cell[2])))
            previous = column
        rows.append(row)
    if not rows:
        raise ValueError("no rows")
    return np.array(labels), rows


def dual_gain(K, y, beta):
    """The dual of a kernel C-SVM in β = α∘y."""
    return y @ beta - 0.5 * beta @ K @ beta


def add_rows(K, slots, a, out):
    return out + a @ K[slots]


def best_bias(y, c, f):
    """A b of least Σ c max(0, 1 − y(f + b)): one of the points where a row bends."""
    losses = [np.sum(c * np.maximum(0, 1 - y * (f + b))) for b in y - f]
    return (y - f)[int(np.argmin(losses))]


def kernel_least_squares(K, y, c, bias):
    """β, b of (K + diag(1/(2c)))β + b = y, Σβ = 0, over the rows with a cost."""
    used = c > 0
    m = int(used.sum())
    A = np.zeros((m + 1, m + 1))
    A[:m, :m] = K[np.ix_(used, used)] + np.diag(0.5 / c[used])
    A[m, :m] = A[:m, m] = float(bias)
    A[m, m] = 1.0 - bias
    solution = np.linalg.solve(A, np.append(y[used], 0.0))
    beta = np.zeros(len(y))
    beta[used] = solution[:m]
    return beta, solution[m]


def centred_step(X, y, c, s, centre, f, mu, loss):
    """What follows from margins f: dual weights, curvatures, Σ c h_μ, Σ c h, Σ c u, Σ c y u, the
    largest u and Xᵀ(weights), the hinge being smoothed about `centre`."""
    r = 1 - y * f
    if loss == "hinge":
        z = centre + r / (mu * s)
        u = np.clip(z, 0, 1)
        h_mu = u * r - 0.5 * mu * s * (u - centre) ** 2
        h, bend = np.maximum(r, 0), np.where((z > 0) & (z < 1), 1 / (mu * s), 0.0)
    else:
        u, h_mu, h, bend = 2 * r, r**2, r**2, np.full(len(r), 2.0)
    weight = c * y * u
    sums = (c @ h_mu, c @ h, c @ u, weight.sum(), max(u.max(), 0.0))
    return weight, c * bend, sums, dense(X).T @ weight


def kernel_objective(model, K, y, c, beta, b):
    """½βᵀKβ + Σ c loss(1 − y(Kβ + b))."""
    f = K @ beta
    r = 1 - y * (f + b)
    return 0.5 * beta @ f + c @ (r**2 if model == "lssvm" else np.maximum(r, 0))


def smoothed_kernel(model, K, y, c, bias, beta, b, mu, centre):
    """F_μ of a kernel machine, and the β that its gradient has beside the point's own."""
    f = K @ beta
    r = 1 - y * (f + b)
    if model == "lssvm":
        return 0.5 * beta @ f + c @ r**2, 2 * c * y * r
    largest = np.abs(K).max(axis=1)
    s = np.maximum(largest, 1.0) if bias else largest
    u = np.clip(centre + r / (mu * s), 0, 1)
    return 0.5 * beta @ f + c @ (u * r - mu * s / 2 * (u - centre) ** 2), c * y * u


def nesvm_in_beta(K, y, c, bias, mu, rounds):
    """Algorithm 1 in the paper's literal form, X replaced by K and gradients taken in β: two
    products with K a round. The C-SVM's β and b."""
    n, largest = len(y), np.abs(K).max(axis=1)
    s = np.maximum(largest, 1.0) if bias else largest
    B = np.hstack([K, np.ones((n, int(bias)))])
    L = np.linalg.eigvalsh(np.pad(K, (0, int(bias))) + B.T @ (B * (c / (mu * s))[:, None]))[-1]
    w, z_sum = np.zeros(n + bias), np.zeros(n + bias)
    for k in range(rounds):
        u = np.clip((1 - y * (B @ w)) / (mu * s), 0, 1)
        g = -B.T @ (c * y * u)
        g[:n] += K @ w[:n]
        z_sum += (k + 1) / 2 * g
        w = 2 / (k + 3) * (-z_sum / L) + (k + 1) / (k + 3) * (w - g / L)
    return w[:n], w[-1] if bias else 0.0


def algorithm_1(F, gradient, w, w_star, L, rounds, tight=False, restart=False):
    """The paper's Algorithm 1, for any F: every point that is evaluated, the last that is not only
    tested, and the one after it. `tight` doubles L where every tenth descent test fails, `restart`
    forgets the history where the gradient points against the step."""
    seen, last, history, k = [], w, 0 * w, 0
    for _ in range(rounds):
        seen.append(w)
        last = w
        g = gradient(w)
        y, history = w - g / L, history + (k + 1) / 2 * g
        after = 2 / (k + 3) * (w_star - history / L) + (k + 1) / (k + 3) * y
        if tight and k % 10 == 0:
            seen.append(y)
            if F(y) > F(w) - g @ g / (2 * L) + 1e-12 * abs(F(w)):
                L, k, w_star, history = 2 * L, 0, w, 0 * w
                continue
        if restart and k > 0 and g @ (after - w) > 0:
            w, w_star, history, k = y, y, 0 * w, 0
        else:
            w, k = after, k + 1
    return seen, last, w


def brier(probabilities, labels_index):
    """The mean over rows of Σ_j (p_j − [j is the label])²: 0 is perfect, 2 the worst."""
    right = np.eye(np.shape(probabilities)[1])[labels_index]
    return np.square(probabilities - right).sum(axis=1).mean()
