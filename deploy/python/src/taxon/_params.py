"""Parameters of the estimators. Written by generate.py from `taxon methods --json`: do not edit."""

from __future__ import annotations

from typing import Any, Callable

from sklearn.base import BaseEstimator

# Option of the binary -> (its parameter, the default that is not passed on).
OPTIONS: dict[str, tuple[str, Any]] = {
    "loss": ("loss", None),
    "C": ("C", 1.0),
    "bias": ("bias", 1.0),
    "families": ("families", "none"),
    "anchor": ("anchor", 0.01),
    "positive-weight": ("positive_weight", 1.0),
    "internal-weight": ("internal_weight", 1.0),
    "edge-weights": ("edge_weights", "even"),
    "cost-by": ("cost_by", "class"),
    "bias-pull": ("bias_pull", "parent"),
    "gap": ("gap", 0.01),
    "schedule": ("schedule", "twoblock"),
    "colouring": ("colouring", "largest-first"),
    "stiffness": ("stiffness", "support"),
    "momentum": ("momentum", "fista"),
    "epochs": ("epochs", 0),
    "prior-shift": ("prior_shift", 0.0),
    "prune": ("prune", "empty"),
    "max-sweeps": ("max_sweeps", 0),
    "max-time": ("max_time", 0.0),
    "rescale": ("rescale", "slack"),
    "alpha": ("alpha", 1.0),
    "label-loss": ("label_loss", "delta"),
    "iterations": ("iterations", 2500),
    "burn-in": ("burn_in", 1000),
    "chains": ("chains", 4),
    "keep-draws": ("keep_draws", 200),
    "leapfrog": ("leapfrog", 30),
    "inference": ("inference", "map"),
    "covariance": ("covariance", "full"),
    "likelihood": ("likelihood", "binary"),
    "prior": ("prior", "fisher"),
    "prior-inverse": ("prior_inverse", "diagonal"),
    "prior-scale": ("prior_scale", "paper"),
    "tolerance": ("tolerance", 0.001),
}

METHODS: tuple[str, ...] = (
    "rr-svm",
    "rr-lr",
    "bsvm",
    "blr",
    "td",
    "h-svm",
    "h-rls",
    "mlr",
    "rr-mlr",
    "msvm",
    "flatmult",
    "hiermult",
    "hsvm",
    "transfer",
    "ot",
    "rr-msvm",
    "hm3",
    "corrmnl",
    "hblr-m1",
    "hblr-m2",
    "hblr-m3",
)

# The methods whose scores are probabilities.
PROBABLE: tuple[str, ...] = (
    "rr-lr",
    "blr",
    "mlr",
    "rr-mlr",
    "corrmnl",
    "hblr-m1",
    "hblr-m2",
    "hblr-m3",
)


class HierarchicalParameters(BaseEstimator):
    """Parameters of taxon.HierarchicalClassifier.

    Parameters
    ----------
    method : str
        ``rr-svm``: SVMs of all classes, each drawn to its parent's or neighbours' weights; ``rr-lr``: the same
        with the logistic loss: scores are probabilities; ``bsvm``: one-versus-rest SVMs, each class for itself;
        ``blr``: one-versus-rest logistic regressions, each class for itself; ``td``: one-versus-rest among the
        children of each node; predictions descend from the root; ``h-svm``: an SVM for each node, on the instances
        at or below its parent; predictions are sets of paths; ``h-rls``: a ridge regression for each node, on the
        instances at or below its parent; predictions are sets of paths; ``mlr``: soft-max regression of all
        classes together, without the structure; ``rr-mlr``: recursive regularisation with the soft-max: classes
        near their parents, all against each other; ``msvm``: the multi-class SVM of Crammer and Singer, without
        the structure; ``flatmult``: the same with C divided by the number of instances; ``hiermult``: the same at
        each node of a hierarchy among its children; predictions descend from the root; ``hsvm``: one SVM over all
        paths of a hierarchy, with losses that grow with the distance of the leaves; ``transfer``: one SVM over the
        children of all nodes, which pulls each to its parent; predictions descend; ``ot``: one SVM over the
        children of all nodes, which sets each apart from its ancestors; predictions descend; ``rr-msvm``:
        recursive regularisation with the multi-class SVM of Crammer and Singer: classes near their parents, all
        against each other; ``hm3``: maximum margin of sets of paths (H-M3): all nodes' labels of an instance
        together; ``corrmnl``: Bayesian soft-max whose classes share coefficients along their paths, by MCMC; for
        small problems; ``hblr-m1``: hierarchical Bayesian logistic regression: learns how alike the children of
        each node are; no C to tune; ``hblr-m2``: the same, for each node and feature; ``hblr-m3``: the same, for
        each class and node by itself.
    loss : str | None, default None
        Loss function (default: the first that the method has) (hinge of rr-svm, bsvm, td, h-svm, hsvm, transfer,
        ot; squared-hinge of rr-svm, bsvm, td, h-svm).
    C : float, default 1.0
        Weight of the losses against the regularisation; larger fits closer (rr-svm, rr-lr, bsvm, blr, td, h-svm,
        h-rls, mlr, rr-mlr, msvm, flatmult, hiermult, hsvm, transfer, ot, rr-msvm, hm3).
    bias : float, default 1.0
        Value of the constant bias feature; 0: no bias.
    families : int | str, default "none"
        Learn a hierarchy: ``N`` families of classes, auto (about 16 classes in each), or none (rr-svm, rr-lr, td,
        h-svm, h-rls, hm3, hblr-m1, hblr-m2, hblr-m3).
    anchor : float, default 0.01
        Graphs: pull of all classes to zero; 0: none, as in the papers, without a certificate (rr-svm, rr-lr).
    positive_weight : float | str, default 1.0
        Weight of the losses of a class's own instances: a ``NUMBER``, or balanced (by rarity, at most 100)
        (rr-svm, rr-lr, bsvm, blr, td, h-svm).
    internal_weight : float, default 1.0
        Regularisation weight of edges between internal nodes (rr-svm, rr-lr).
    edge_weights : str, default "even"
        Trees, factor on inner edges: even (1), depth (of the lower node), size (classes below) (rr-svm, rr-lr).
    cost_by : str, default "class"
        Graphs, what --C multiplies: losses per class, or by degree, its number of neighbours (rr-svm, rr-lr).
    bias_pull : str, default "parent"
        What a class's bias is regularised towards: its parent's bias, or zero (rr-svm, rr-lr).
    gap : float, default 0.01
        Stop when the certified relative duality gap (P-D)/P of the whole problem is at most this (rr-svm, rr-lr,
        bsvm, blr, td, h-svm, h-rls, mlr, rr-mlr, msvm, flatmult, hiermult, hsvm, transfer, ot, rr-msvm, hm3).
    schedule : str, default "twoblock"
        Updates in a sweep: twoblock (classes, then inner nodes), parity (levels), colour, jacobi (colour, jacobi
        of rr-svm, rr-lr).
    colouring : str, default "largest-first"
        Heuristic for the greedy colouring of schedule colour (rr-svm, rr-lr).
    stiffness : str, default "support"
        Twoblock, curvature of the parent update: support (support vectors; fast), full (safe) (rr-svm, rr-lr).
    momentum : str, default "fista"
        Twoblock: acceleration of the internal nodes from sweep to sweep (rr-svm, rr-lr).
    epochs : int, default 0
        At least ``N`` passes over the data for each class in a sweep; 0: chosen by sweep and loss (rr-svm, rr-lr,
        bsvm, blr).
    prior_shift : float, default 0.0
        Add ``T`` ln(n_max/n) to the scores of a class with n instances, n_max those of the largest; tune finds it
        (rr-svm, rr-lr, bsvm, blr, mlr, rr-mlr, msvm, flatmult, rr-msvm).
    prune : str, default "empty"
        Hierarchy leaves without instances: leave them out (empty), or train them on negatives alone (none).
    max_sweeps : int, default 0
        Stop after ``N`` sweeps; 0: no limit.
    max_time : float, default 0.0
        Stop after ``S`` seconds: running tasks end, and the certificate and the weights are still made; 0: no
        limit.
    rescale : str, default "slack"
        How the distance of two leaves enters the loss: slack rescaling or margin rescaling (hsvm).
    alpha : float, default 1.0
        Orthogonality penalty between nodes and their ancestors; halved until the problem is convex (ot).
    label_loss : str, default "delta"
        Loss of a set of paths: delta (wrong nodes), or wrong nodes with right parents: unif, sibl, subtree weights
        (hm3).
    iterations : int, default 2500
        ``N`` iterations of each chain, burn-in included (corrmnl).
    burn_in : int, default 1000
        First ``N`` iterations, which adapt the step size and are discarded (corrmnl).
    chains : int, default 4
        ``N`` MCMC chains from dispersed starts, run side by side (corrmnl).
    keep_draws : int, default 200
        Average predictions over ``N`` posterior draws, which the model keeps (corrmnl).
    leapfrog : int, default 30
        At most ``N`` leapfrog steps of a trajectory, each a pass over the data (corrmnl).
    inference : str, default "map"
        Posterior approximation: map (Laplace) or variational (Gaussian, maximises the ELBO) (hblr-m1, hblr-m2,
        hblr-m3).
    covariance : str, default "full"
        Covariance of a class's posterior: full (quadratic in the features) or diagonal (hblr-m1, hblr-m2,
        hblr-m3).
    likelihood : str, default "binary"
        Binary (one-versus-rest, also for multi-label data) or softmax (single-label data) (hblr-m1, hblr-m2,
        hblr-m3).
    prior : str, default "fisher"
        Prior of the precisions: fisher (Fisher information) or blr (of a logistic regression) (hblr-m1, hblr-m2,
        hblr-m3).
    prior_inverse : str, default "diagonal"
        Inverse of the Fisher information for the prior: diagonal, or full for a few features (hblr-m1, hblr-m2,
        hblr-m3).
    prior_scale : str, default "paper"
        Pooling of features into one prior: paper (mean), median, df (weighted mean) (hblr-m1, hblr-m2, hblr-m3).
    tolerance : float, default 0.001
        Stop when further rounds would change precisions and means by less than this share (hblr-m1, hblr-m2,
        hblr-m3).
    hierarchy : Any, default None
        Pairs of parent and child (a list, an array, a table of two columns; a missing parent is none), a dict from
        a parent to its children (nested or not), a networkx graph, or ``learned``: from the rows. None: no
        hierarchy, or the one that label paths in y tell.
    graph : Any, default None
        Undirected class graph: pairs, or a networkx graph.
    dag : str, default "graph"
        If a class has several parents: ``graph``, ``first-parent`` or ``refuse``.
    path_separator : str, default " > "
        What joins the levels of a label path to a class name.
    targets : str, default "auto"
        How a list of lists in y is read: ``sets`` of labels, or ``paths`` from the top down. ``auto``: as paths if
        no hierarchy or graph is given and each name has one parent in them, as in a tree; else as sets. Lists that
        are the rows of a matrix of 0 and 1 are an indicator; ``paths`` reads that as levels.
    random_state : int | None, default None
        Seed of the order in which instances are visited.
    n_jobs : int | None, default None
        Threads; None or -1: all cores. They change no result.
    memory : str | None, default None
        What the training may take, as ``4GiB``; None: what is free.
    cutoff : str, default "auto"
        Cut-offs for label sets: ``auto`` (of multi-label data), ``fit`` or ``none``.
    verbose : bool | int, default False
        Print progress.
    callback : Callable[[str], None] | None, default None
        Called with each line of progress.
    """

    def __init__(
        self,
        method: str = "rr-svm",
        *,
        loss: str | None = None,
        C: float = 1.0,
        bias: float = 1.0,
        families: int | str = "none",
        anchor: float = 0.01,
        positive_weight: float | str = 1.0,
        internal_weight: float = 1.0,
        edge_weights: str = "even",
        cost_by: str = "class",
        bias_pull: str = "parent",
        gap: float = 0.01,
        schedule: str = "twoblock",
        colouring: str = "largest-first",
        stiffness: str = "support",
        momentum: str = "fista",
        epochs: int = 0,
        prior_shift: float = 0.0,
        prune: str = "empty",
        max_sweeps: int = 0,
        max_time: float = 0.0,
        rescale: str = "slack",
        alpha: float = 1.0,
        label_loss: str = "delta",
        iterations: int = 2500,
        burn_in: int = 1000,
        chains: int = 4,
        keep_draws: int = 200,
        leapfrog: int = 30,
        inference: str = "map",
        covariance: str = "full",
        likelihood: str = "binary",
        prior: str = "fisher",
        prior_inverse: str = "diagonal",
        prior_scale: str = "paper",
        tolerance: float = 0.001,
        hierarchy: Any = None,
        graph: Any = None,
        dag: str = "graph",
        path_separator: str = " > ",
        targets: str = "auto",
        random_state: int | None = None,
        n_jobs: int | None = None,
        memory: str | None = None,
        cutoff: str = "auto",
        verbose: bool | int = False,
        callback: Callable[[str], None] | None = None,
    ) -> None:
        self.method = method
        self.loss = loss
        self.C = C
        self.bias = bias
        self.families = families
        self.anchor = anchor
        self.positive_weight = positive_weight
        self.internal_weight = internal_weight
        self.edge_weights = edge_weights
        self.cost_by = cost_by
        self.bias_pull = bias_pull
        self.gap = gap
        self.schedule = schedule
        self.colouring = colouring
        self.stiffness = stiffness
        self.momentum = momentum
        self.epochs = epochs
        self.prior_shift = prior_shift
        self.prune = prune
        self.max_sweeps = max_sweeps
        self.max_time = max_time
        self.rescale = rescale
        self.alpha = alpha
        self.label_loss = label_loss
        self.iterations = iterations
        self.burn_in = burn_in
        self.chains = chains
        self.keep_draws = keep_draws
        self.leapfrog = leapfrog
        self.inference = inference
        self.covariance = covariance
        self.likelihood = likelihood
        self.prior = prior
        self.prior_inverse = prior_inverse
        self.prior_scale = prior_scale
        self.tolerance = tolerance
        self.hierarchy = hierarchy
        self.graph = graph
        self.dag = dag
        self.path_separator = path_separator
        self.targets = targets
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory = memory
        self.cutoff = cutoff
        self.verbose = verbose
        self.callback = callback


class TextParameters(BaseEstimator):
    """Parameters of taxon.TaxonTextClassifier.

    Parameters
    ----------
    method : str
        ``rr-svm``: SVMs of all classes, each drawn to its parent's or neighbours' weights; ``rr-lr``: the same
        with the logistic loss: scores are probabilities; ``bsvm``: one-versus-rest SVMs, each class for itself;
        ``blr``: one-versus-rest logistic regressions, each class for itself; ``td``: one-versus-rest among the
        children of each node; predictions descend from the root; ``h-svm``: an SVM for each node, on the instances
        at or below its parent; predictions are sets of paths; ``h-rls``: a ridge regression for each node, on the
        instances at or below its parent; predictions are sets of paths; ``mlr``: soft-max regression of all
        classes together, without the structure; ``rr-mlr``: recursive regularisation with the soft-max: classes
        near their parents, all against each other; ``msvm``: the multi-class SVM of Crammer and Singer, without
        the structure; ``flatmult``: the same with C divided by the number of instances; ``hiermult``: the same at
        each node of a hierarchy among its children; predictions descend from the root; ``hsvm``: one SVM over all
        paths of a hierarchy, with losses that grow with the distance of the leaves; ``transfer``: one SVM over the
        children of all nodes, which pulls each to its parent; predictions descend; ``ot``: one SVM over the
        children of all nodes, which sets each apart from its ancestors; predictions descend; ``rr-msvm``:
        recursive regularisation with the multi-class SVM of Crammer and Singer: classes near their parents, all
        against each other; ``hm3``: maximum margin of sets of paths (H-M3): all nodes' labels of an instance
        together; ``corrmnl``: Bayesian soft-max whose classes share coefficients along their paths, by MCMC; for
        small problems; ``hblr-m1``: hierarchical Bayesian logistic regression: learns how alike the children of
        each node are; no C to tune; ``hblr-m2``: the same, for each node and feature; ``hblr-m3``: the same, for
        each class and node by itself.
    loss : str | None, default None
        Loss function (default: the first that the method has) (hinge of rr-svm, bsvm, td, h-svm, hsvm, transfer,
        ot; squared-hinge of rr-svm, bsvm, td, h-svm).
    C : float, default 1.0
        Weight of the losses against the regularisation; larger fits closer (rr-svm, rr-lr, bsvm, blr, td, h-svm,
        h-rls, mlr, rr-mlr, msvm, flatmult, hiermult, hsvm, transfer, ot, rr-msvm, hm3).
    bias : float, default 1.0
        Value of the constant bias feature; 0: no bias.
    families : int | str, default "none"
        Learn a hierarchy: ``N`` families of classes, auto (about 16 classes in each), or none (rr-svm, rr-lr, td,
        h-svm, h-rls, hm3, hblr-m1, hblr-m2, hblr-m3).
    anchor : float, default 0.01
        Graphs: pull of all classes to zero; 0: none, as in the papers, without a certificate (rr-svm, rr-lr).
    positive_weight : float | str, default 1.0
        Weight of the losses of a class's own instances: a ``NUMBER``, or balanced (by rarity, at most 100)
        (rr-svm, rr-lr, bsvm, blr, td, h-svm).
    internal_weight : float, default 1.0
        Regularisation weight of edges between internal nodes (rr-svm, rr-lr).
    edge_weights : str, default "even"
        Trees, factor on inner edges: even (1), depth (of the lower node), size (classes below) (rr-svm, rr-lr).
    cost_by : str, default "class"
        Graphs, what --C multiplies: losses per class, or by degree, its number of neighbours (rr-svm, rr-lr).
    bias_pull : str, default "parent"
        What a class's bias is regularised towards: its parent's bias, or zero (rr-svm, rr-lr).
    gap : float, default 0.01
        Stop when the certified relative duality gap (P-D)/P of the whole problem is at most this (rr-svm, rr-lr,
        bsvm, blr, td, h-svm, h-rls, mlr, rr-mlr, msvm, flatmult, hiermult, hsvm, transfer, ot, rr-msvm, hm3).
    schedule : str, default "twoblock"
        Updates in a sweep: twoblock (classes, then inner nodes), parity (levels), colour, jacobi (colour, jacobi
        of rr-svm, rr-lr).
    colouring : str, default "largest-first"
        Heuristic for the greedy colouring of schedule colour (rr-svm, rr-lr).
    stiffness : str, default "support"
        Twoblock, curvature of the parent update: support (support vectors; fast), full (safe) (rr-svm, rr-lr).
    momentum : str, default "fista"
        Twoblock: acceleration of the internal nodes from sweep to sweep (rr-svm, rr-lr).
    epochs : int, default 0
        At least ``N`` passes over the data for each class in a sweep; 0: chosen by sweep and loss (rr-svm, rr-lr,
        bsvm, blr).
    prior_shift : float, default 0.0
        Add ``T`` ln(n_max/n) to the scores of a class with n instances, n_max those of the largest; tune finds it
        (rr-svm, rr-lr, bsvm, blr, mlr, rr-mlr, msvm, flatmult, rr-msvm).
    prune : str, default "empty"
        Hierarchy leaves without instances: leave them out (empty), or train them on negatives alone (none).
    max_sweeps : int, default 0
        Stop after ``N`` sweeps; 0: no limit.
    max_time : float, default 0.0
        Stop after ``S`` seconds: running tasks end, and the certificate and the weights are still made; 0: no
        limit.
    rescale : str, default "slack"
        How the distance of two leaves enters the loss: slack rescaling or margin rescaling (hsvm).
    alpha : float, default 1.0
        Orthogonality penalty between nodes and their ancestors; halved until the problem is convex (ot).
    label_loss : str, default "delta"
        Loss of a set of paths: delta (wrong nodes), or wrong nodes with right parents: unif, sibl, subtree weights
        (hm3).
    iterations : int, default 2500
        ``N`` iterations of each chain, burn-in included (corrmnl).
    burn_in : int, default 1000
        First ``N`` iterations, which adapt the step size and are discarded (corrmnl).
    chains : int, default 4
        ``N`` MCMC chains from dispersed starts, run side by side (corrmnl).
    keep_draws : int, default 200
        Average predictions over ``N`` posterior draws, which the model keeps (corrmnl).
    leapfrog : int, default 30
        At most ``N`` leapfrog steps of a trajectory, each a pass over the data (corrmnl).
    inference : str, default "map"
        Posterior approximation: map (Laplace) or variational (Gaussian, maximises the ELBO) (hblr-m1, hblr-m2,
        hblr-m3).
    covariance : str, default "full"
        Covariance of a class's posterior: full (quadratic in the features) or diagonal (hblr-m1, hblr-m2,
        hblr-m3).
    likelihood : str, default "binary"
        Binary (one-versus-rest, also for multi-label data) or softmax (single-label data) (hblr-m1, hblr-m2,
        hblr-m3).
    prior : str, default "fisher"
        Prior of the precisions: fisher (Fisher information) or blr (of a logistic regression) (hblr-m1, hblr-m2,
        hblr-m3).
    prior_inverse : str, default "diagonal"
        Inverse of the Fisher information for the prior: diagonal, or full for a few features (hblr-m1, hblr-m2,
        hblr-m3).
    prior_scale : str, default "paper"
        Pooling of features into one prior: paper (mean), median, df (weighted mean) (hblr-m1, hblr-m2, hblr-m3).
    tolerance : float, default 0.001
        Stop when further rounds would change precisions and means by less than this share (hblr-m1, hblr-m2,
        hblr-m3).
    hierarchy : Any, default None
        Pairs of parent and child (a list, an array, a table of two columns; a missing parent is none), a dict from
        a parent to its children (nested or not), a networkx graph, or ``learned``: from the rows. None: no
        hierarchy, or the one that label paths in y tell.
    graph : Any, default None
        Undirected class graph: pairs, or a networkx graph.
    dag : str, default "graph"
        If a class has several parents: ``graph``, ``first-parent`` or ``refuse``.
    path_separator : str, default " > "
        What joins the levels of a label path to a class name.
    targets : str, default "auto"
        How a list of lists in y is read: ``sets`` of labels, or ``paths`` from the top down. ``auto``: as paths if
        no hierarchy or graph is given and each name has one parent in them, as in a tree; else as sets. Lists that
        are the rows of a matrix of 0 and 1 are an indicator; ``paths`` reads that as levels.
    random_state : int | None, default None
        Seed of the order in which instances are visited.
    n_jobs : int | None, default None
        Threads; None or -1: all cores. They change no result.
    memory : str | None, default None
        What the training may take, as ``4GiB``; None: what is free.
    cutoff : str, default "auto"
        Cut-offs for label sets: ``auto`` (of multi-label data), ``fit`` or ``none``.
    verbose : bool | int, default False
        Print progress.
    ngrams : int, default 1
        Up to so many words that stand side by side make a feature, too.
    stop_words : str | list[str] | None, default None
        Words that make no feature: ``english``, or a list.
    min_df : int | float, default 2
        Features stand in so many texts at least, or in such a share of them.
    max_df : int | float, default 1.0
        Features stand in so many texts at most, or in such a share of them.
    callback : Callable[[str], None] | None, default None
        Called with each line of progress.
    """

    def __init__(
        self,
        method: str = "rr-svm",
        *,
        loss: str | None = None,
        C: float = 1.0,
        bias: float = 1.0,
        families: int | str = "none",
        anchor: float = 0.01,
        positive_weight: float | str = 1.0,
        internal_weight: float = 1.0,
        edge_weights: str = "even",
        cost_by: str = "class",
        bias_pull: str = "parent",
        gap: float = 0.01,
        schedule: str = "twoblock",
        colouring: str = "largest-first",
        stiffness: str = "support",
        momentum: str = "fista",
        epochs: int = 0,
        prior_shift: float = 0.0,
        prune: str = "empty",
        max_sweeps: int = 0,
        max_time: float = 0.0,
        rescale: str = "slack",
        alpha: float = 1.0,
        label_loss: str = "delta",
        iterations: int = 2500,
        burn_in: int = 1000,
        chains: int = 4,
        keep_draws: int = 200,
        leapfrog: int = 30,
        inference: str = "map",
        covariance: str = "full",
        likelihood: str = "binary",
        prior: str = "fisher",
        prior_inverse: str = "diagonal",
        prior_scale: str = "paper",
        tolerance: float = 0.001,
        hierarchy: Any = None,
        graph: Any = None,
        dag: str = "graph",
        path_separator: str = " > ",
        targets: str = "auto",
        random_state: int | None = None,
        n_jobs: int | None = None,
        memory: str | None = None,
        cutoff: str = "auto",
        verbose: bool | int = False,
        ngrams: int = 1,
        stop_words: str | list[str] | None = None,
        min_df: int | float = 2,
        max_df: int | float = 1.0,
        callback: Callable[[str], None] | None = None,
    ) -> None:
        self.method = method
        self.loss = loss
        self.C = C
        self.bias = bias
        self.families = families
        self.anchor = anchor
        self.positive_weight = positive_weight
        self.internal_weight = internal_weight
        self.edge_weights = edge_weights
        self.cost_by = cost_by
        self.bias_pull = bias_pull
        self.gap = gap
        self.schedule = schedule
        self.colouring = colouring
        self.stiffness = stiffness
        self.momentum = momentum
        self.epochs = epochs
        self.prior_shift = prior_shift
        self.prune = prune
        self.max_sweeps = max_sweeps
        self.max_time = max_time
        self.rescale = rescale
        self.alpha = alpha
        self.label_loss = label_loss
        self.iterations = iterations
        self.burn_in = burn_in
        self.chains = chains
        self.keep_draws = keep_draws
        self.leapfrog = leapfrog
        self.inference = inference
        self.covariance = covariance
        self.likelihood = likelihood
        self.prior = prior
        self.prior_inverse = prior_inverse
        self.prior_scale = prior_scale
        self.tolerance = tolerance
        self.hierarchy = hierarchy
        self.graph = graph
        self.dag = dag
        self.path_separator = path_separator
        self.targets = targets
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory = memory
        self.cutoff = cutoff
        self.verbose = verbose
        self.ngrams = ngrams
        self.stop_words = stop_words
        self.min_df = min_df
        self.max_df = max_df
        self.callback = callback


class FlatParameters(BaseEstimator):
    """Parameters of taxon.TaxonClassifier.

    Parameters
    ----------
    method : str
        ``rr-svm``: SVMs of all classes, each drawn to its parent's or neighbours' weights; ``rr-lr``: the same
        with the logistic loss: scores are probabilities; ``bsvm``: one-versus-rest SVMs, each class for itself;
        ``blr``: one-versus-rest logistic regressions, each class for itself; ``td``: one-versus-rest among the
        children of each node; predictions descend from the root; ``h-svm``: an SVM for each node, on the instances
        at or below its parent; predictions are sets of paths; ``h-rls``: a ridge regression for each node, on the
        instances at or below its parent; predictions are sets of paths; ``mlr``: soft-max regression of all
        classes together, without the structure; ``rr-mlr``: recursive regularisation with the soft-max: classes
        near their parents, all against each other; ``msvm``: the multi-class SVM of Crammer and Singer, without
        the structure; ``flatmult``: the same with C divided by the number of instances; ``hiermult``: the same at
        each node of a hierarchy among its children; predictions descend from the root; ``hsvm``: one SVM over all
        paths of a hierarchy, with losses that grow with the distance of the leaves; ``transfer``: one SVM over the
        children of all nodes, which pulls each to its parent; predictions descend; ``ot``: one SVM over the
        children of all nodes, which sets each apart from its ancestors; predictions descend; ``rr-msvm``:
        recursive regularisation with the multi-class SVM of Crammer and Singer: classes near their parents, all
        against each other; ``hm3``: maximum margin of sets of paths (H-M3): all nodes' labels of an instance
        together; ``corrmnl``: Bayesian soft-max whose classes share coefficients along their paths, by MCMC; for
        small problems; ``hblr-m1``: hierarchical Bayesian logistic regression: learns how alike the children of
        each node are; no C to tune; ``hblr-m2``: the same, for each node and feature; ``hblr-m3``: the same, for
        each class and node by itself.
    loss : str | None, default None
        Loss function (default: the first that the method has) (hinge of rr-svm, bsvm, td, h-svm, hsvm, transfer,
        ot; squared-hinge of rr-svm, bsvm, td, h-svm).
    C : float, default 1.0
        Weight of the losses against the regularisation; larger fits closer (rr-svm, rr-lr, bsvm, blr, td, h-svm,
        h-rls, mlr, rr-mlr, msvm, flatmult, hiermult, hsvm, transfer, ot, rr-msvm, hm3).
    bias : float, default 1.0
        Value of the constant bias feature; 0: no bias.
    families : int | str, default "none"
        Learn a hierarchy: ``N`` families of classes, auto (about 16 classes in each), or none (rr-svm, rr-lr, td,
        h-svm, h-rls, hm3, hblr-m1, hblr-m2, hblr-m3).
    anchor : float, default 0.01
        Graphs: pull of all classes to zero; 0: none, as in the papers, without a certificate (rr-svm, rr-lr).
    positive_weight : float | str, default 1.0
        Weight of the losses of a class's own instances: a ``NUMBER``, or balanced (by rarity, at most 100)
        (rr-svm, rr-lr, bsvm, blr, td, h-svm).
    internal_weight : float, default 1.0
        Regularisation weight of edges between internal nodes (rr-svm, rr-lr).
    edge_weights : str, default "even"
        Trees, factor on inner edges: even (1), depth (of the lower node), size (classes below) (rr-svm, rr-lr).
    cost_by : str, default "class"
        Graphs, what --C multiplies: losses per class, or by degree, its number of neighbours (rr-svm, rr-lr).
    bias_pull : str, default "parent"
        What a class's bias is regularised towards: its parent's bias, or zero (rr-svm, rr-lr).
    gap : float, default 0.01
        Stop when the certified relative duality gap (P-D)/P of the whole problem is at most this (rr-svm, rr-lr,
        bsvm, blr, td, h-svm, h-rls, mlr, rr-mlr, msvm, flatmult, hiermult, hsvm, transfer, ot, rr-msvm, hm3).
    schedule : str, default "twoblock"
        Updates in a sweep: twoblock (classes, then inner nodes), parity (levels), colour, jacobi (colour, jacobi
        of rr-svm, rr-lr).
    colouring : str, default "largest-first"
        Heuristic for the greedy colouring of schedule colour (rr-svm, rr-lr).
    stiffness : str, default "support"
        Twoblock, curvature of the parent update: support (support vectors; fast), full (safe) (rr-svm, rr-lr).
    momentum : str, default "fista"
        Twoblock: acceleration of the internal nodes from sweep to sweep (rr-svm, rr-lr).
    epochs : int, default 0
        At least ``N`` passes over the data for each class in a sweep; 0: chosen by sweep and loss (rr-svm, rr-lr,
        bsvm, blr).
    prior_shift : float, default 0.0
        Add ``T`` ln(n_max/n) to the scores of a class with n instances, n_max those of the largest; tune finds it
        (rr-svm, rr-lr, bsvm, blr, mlr, rr-mlr, msvm, flatmult, rr-msvm).
    prune : str, default "empty"
        Hierarchy leaves without instances: leave them out (empty), or train them on negatives alone (none).
    max_sweeps : int, default 0
        Stop after ``N`` sweeps; 0: no limit.
    max_time : float, default 0.0
        Stop after ``S`` seconds: running tasks end, and the certificate and the weights are still made; 0: no
        limit.
    rescale : str, default "slack"
        How the distance of two leaves enters the loss: slack rescaling or margin rescaling (hsvm).
    alpha : float, default 1.0
        Orthogonality penalty between nodes and their ancestors; halved until the problem is convex (ot).
    label_loss : str, default "delta"
        Loss of a set of paths: delta (wrong nodes), or wrong nodes with right parents: unif, sibl, subtree weights
        (hm3).
    iterations : int, default 2500
        ``N`` iterations of each chain, burn-in included (corrmnl).
    burn_in : int, default 1000
        First ``N`` iterations, which adapt the step size and are discarded (corrmnl).
    chains : int, default 4
        ``N`` MCMC chains from dispersed starts, run side by side (corrmnl).
    keep_draws : int, default 200
        Average predictions over ``N`` posterior draws, which the model keeps (corrmnl).
    leapfrog : int, default 30
        At most ``N`` leapfrog steps of a trajectory, each a pass over the data (corrmnl).
    inference : str, default "map"
        Posterior approximation: map (Laplace) or variational (Gaussian, maximises the ELBO) (hblr-m1, hblr-m2,
        hblr-m3).
    covariance : str, default "full"
        Covariance of a class's posterior: full (quadratic in the features) or diagonal (hblr-m1, hblr-m2,
        hblr-m3).
    likelihood : str, default "binary"
        Binary (one-versus-rest, also for multi-label data) or softmax (single-label data) (hblr-m1, hblr-m2,
        hblr-m3).
    prior : str, default "fisher"
        Prior of the precisions: fisher (Fisher information) or blr (of a logistic regression) (hblr-m1, hblr-m2,
        hblr-m3).
    prior_inverse : str, default "diagonal"
        Inverse of the Fisher information for the prior: diagonal, or full for a few features (hblr-m1, hblr-m2,
        hblr-m3).
    prior_scale : str, default "paper"
        Pooling of features into one prior: paper (mean), median, df (weighted mean) (hblr-m1, hblr-m2, hblr-m3).
    tolerance : float, default 0.001
        Stop when further rounds would change precisions and means by less than this share (hblr-m1, hblr-m2,
        hblr-m3).
    targets : str, default "auto"
        How a list of lists in y is read: ``sets`` of labels, or ``paths`` from the top down. ``auto``: as paths if
        no hierarchy or graph is given and each name has one parent in them, as in a tree; else as sets. Lists that
        are the rows of a matrix of 0 and 1 are an indicator; ``paths`` reads that as levels.
    random_state : int | None, default None
        Seed of the order in which instances are visited.
    n_jobs : int | None, default None
        Threads; None or -1: all cores. They change no result.
    memory : str | None, default None
        What the training may take, as ``4GiB``; None: what is free.
    cutoff : str, default "auto"
        Cut-offs for label sets: ``auto`` (of multi-label data), ``fit`` or ``none``.
    verbose : bool | int, default False
        Print progress.
    callback : Callable[[str], None] | None, default None
        Called with each line of progress.
    """

    def __init__(
        self,
        method: str = "bsvm",
        *,
        loss: str | None = None,
        C: float = 1.0,
        bias: float = 1.0,
        families: int | str = "none",
        anchor: float = 0.01,
        positive_weight: float | str = 1.0,
        internal_weight: float = 1.0,
        edge_weights: str = "even",
        cost_by: str = "class",
        bias_pull: str = "parent",
        gap: float = 0.01,
        schedule: str = "twoblock",
        colouring: str = "largest-first",
        stiffness: str = "support",
        momentum: str = "fista",
        epochs: int = 0,
        prior_shift: float = 0.0,
        prune: str = "empty",
        max_sweeps: int = 0,
        max_time: float = 0.0,
        rescale: str = "slack",
        alpha: float = 1.0,
        label_loss: str = "delta",
        iterations: int = 2500,
        burn_in: int = 1000,
        chains: int = 4,
        keep_draws: int = 200,
        leapfrog: int = 30,
        inference: str = "map",
        covariance: str = "full",
        likelihood: str = "binary",
        prior: str = "fisher",
        prior_inverse: str = "diagonal",
        prior_scale: str = "paper",
        tolerance: float = 0.001,
        targets: str = "auto",
        random_state: int | None = None,
        n_jobs: int | None = None,
        memory: str | None = None,
        cutoff: str = "auto",
        verbose: bool | int = False,
        callback: Callable[[str], None] | None = None,
    ) -> None:
        self.method = method
        self.loss = loss
        self.C = C
        self.bias = bias
        self.families = families
        self.anchor = anchor
        self.positive_weight = positive_weight
        self.internal_weight = internal_weight
        self.edge_weights = edge_weights
        self.cost_by = cost_by
        self.bias_pull = bias_pull
        self.gap = gap
        self.schedule = schedule
        self.colouring = colouring
        self.stiffness = stiffness
        self.momentum = momentum
        self.epochs = epochs
        self.prior_shift = prior_shift
        self.prune = prune
        self.max_sweeps = max_sweeps
        self.max_time = max_time
        self.rescale = rescale
        self.alpha = alpha
        self.label_loss = label_loss
        self.iterations = iterations
        self.burn_in = burn_in
        self.chains = chains
        self.keep_draws = keep_draws
        self.leapfrog = leapfrog
        self.inference = inference
        self.covariance = covariance
        self.likelihood = likelihood
        self.prior = prior
        self.prior_inverse = prior_inverse
        self.prior_scale = prior_scale
        self.tolerance = tolerance
        self.targets = targets
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory = memory
        self.cutoff = cutoff
        self.verbose = verbose
        self.callback = callback
