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
        Loss of an instance (default: the first that the method has) (hinge of rr-svm, bsvm, td, h-svm, hsvm,
        transfer, ot; squared-hinge of rr-svm, bsvm, td, h-svm).
    C : float, default 1.0
        Weight of the losses against the regularisation (rr-svm, rr-lr, bsvm, blr, td, h-svm, h-rls, mlr, rr-mlr,
        msvm, flatmult, hiermult, hsvm, transfer, ot, rr-msvm, hm3).
    bias : float, default 1.0
        Value of the bias feature, 0 for none.
    families : int | str, default "none"
        Data without a hierarchy: learn one from the data, with ``N`` families of classes, or auto, about 16
        classes in each (rr-svm, rr-lr, td, h-svm, h-rls, hm3, hblr-m1, hblr-m2, hblr-m3).
    anchor : float, default 0.01
        Graphs: pull of every class with edges towards zero; 0 is the papers' objective, without a certificate
        (rr-svm, rr-lr).
    positive_weight : float | str, default 1.0
        Weight of the losses of a class's own instances: a ``NUMBER``, or balanced (how rare they are, at most 100)
        (rr-svm, rr-lr, bsvm, blr, td, h-svm).
    internal_weight : float, default 1.0
        Weight of the edges between internal nodes (rr-svm, rr-lr).
    edge_weights : str, default "even"
        Trees: what the weight of an edge between internal nodes is multiplied by: even, by 1; depth, by the lower
        node's depth; size, by how many classes are below it, so that families stay near one another and classes
        are drawn less to them (rr-svm, rr-lr).
    cost_by : str, default "class"
        Graphs: what --C weighs: class, the losses of each class alike; degree, those of a class times its
        neighbours (and the anchor), so that one with many is not drawn off its instances (rr-svm, rr-lr).
    bias_pull : str, default "parent"
        What a class's bias is drawn to: its parent's, or zero, as without a structure (rr-svm, rr-lr).
    gap : float, default 0.01
        Stop when no weights could lower the objective P by more than this share: the certified relative gap
        (P-D)/P, D being the dual (rr-svm, rr-lr, bsvm, blr, td, h-svm, h-rls, mlr, rr-mlr, msvm, flatmult,
        hiermult, hsvm, transfer, ot, rr-msvm, hm3).
    schedule : str, default "twoblock"
        What a sweep solves at a time: twoblock, all classes and then all internal nodes at once; parity, even and
        odd levels in turn; colour, sets of nodes without an edge between them in turn; jacobi, all nodes side by
        side (colour, jacobi of rr-svm, rr-lr).
    colouring : str, default "largest-first"
        Colour: order in which nodes get their colours, greedily (rr-svm, rr-lr).
    stiffness : str, default "support"
        Twoblock: on which features a class holds back its parent's step: those of its support vectors, or all,
        which is slower (rr-svm, rr-lr).
    momentum : str, default "fista"
        Twoblock: extrapolate the internal nodes from sweep to sweep, or don't (rr-svm, rr-lr).
    epochs : int, default 0
        At least ``N`` passes over the data for each class in a sweep; 0: three, with the squared hinge one in the
        first two sweeps (rr-svm, rr-lr, bsvm, blr).
    prior_shift : float, default 0.0
        Raise the scores of rare classes by ``T`` ln(n_max/n), n being the class's training instances, n_max those
        of the largest class; tune finds it (rr-svm, rr-lr, bsvm, blr, mlr, rr-mlr, msvm, flatmult, rr-msvm).
    prune : str, default "empty"
        Leaves of the hierarchy without instances: leave them out, or train them on negatives alone.
    max_sweeps : int, default 0
        Stop after ``N`` sweeps, 0 for no cap.
    max_time : float, default 0.0
        After ``S`` seconds solve nothing more, 0 for no cap: tasks under way end, one pass over the data certifies
        what is there, and the weights are written.
    rescale : str, default "slack"
        What the distance of two leaves multiplies: slack, the loss of the margin that is missing; margin, the
        margin that is asked for (hsvm).
    alpha : float, default 1.0
        Weight of the products of nodes with their ancestors; halved until the problem is convex (alpha_used in the
        report) (ot).
    label_loss : str, default "delta"
        What a predicted set of paths costs: delta counts wrong nodes, unif, sibl and subtree those whose parent is
        right, with equal weights, a parent's shared out among its children, or by the size of the subtree (hm3).
    iterations : int, default 2500
        ``N`` iterations of each chain, with the burn-in (corrmnl).
    burn_in : int, default 1000
        The first ``N`` iterations, which fit the step size and are no draws (corrmnl).
    chains : int, default 4
        ``N`` chains from places far apart, which run side by side (corrmnl).
    keep_draws : int, default 200
        Predictions average ``N`` draws, which the model holds, evenly from all chains (corrmnl).
    leapfrog : int, default 30
        ``N`` steps of a trajectory at most, each a pass over the data (corrmnl).
    inference : str, default "map"
        What stands for the posterior: map, the leaves' maxima with the variances of Laplace's approximation;
        variational, the normals of the greatest lower bound on the evidence (hblr-m1, hblr-m2, hblr-m3).
    covariance : str, default "full"
        Of a class's posterior: full, features squared numbers at a time; diagonal, for many features (hblr-m1,
        hblr-m2, hblr-m3).
    likelihood : str, default "binary"
        How classes meet: binary, each against all other instances, so that an instance may have several; softmax,
        all against each other, an instance having exactly one (hblr-m1, hblr-m2, hblr-m3).
    prior : str, default "fisher"
        Where the precisions' priors come from: fisher, the information that the instances hold on a class of its
        size; blr, on the class as a logistic regression with C = 1 sees it (hblr-m1, hblr-m2, hblr-m3).
    prior_inverse : str, default "diagonal"
        Inverse of that information: diagonal, feature by feature; full, for fewer features than instances, and few
        (hblr-m1, hblr-m2, hblr-m3).
    prior_scale : str, default "paper"
        Hblr-m1 and hblr-m3: what stands for all features in the one prior of a node: paper, their mean, in which
        rare ones dominate; median; df, their mean by how many instances have them (hblr-m1, hblr-m2, hblr-m3).
    tolerance : float, default 0.001
        Stop when all further rounds together would change no learned precision, and no mean relative to the
        largest one, by more than this share. Leaves are solved as exactly as it asks for, so a checkpoint goes on
        with the same tolerance alone (hblr-m1, hblr-m2, hblr-m3).
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
        Loss of an instance (default: the first that the method has) (hinge of rr-svm, bsvm, td, h-svm, hsvm,
        transfer, ot; squared-hinge of rr-svm, bsvm, td, h-svm).
    C : float, default 1.0
        Weight of the losses against the regularisation (rr-svm, rr-lr, bsvm, blr, td, h-svm, h-rls, mlr, rr-mlr,
        msvm, flatmult, hiermult, hsvm, transfer, ot, rr-msvm, hm3).
    bias : float, default 1.0
        Value of the bias feature, 0 for none.
    families : int | str, default "none"
        Data without a hierarchy: learn one from the data, with ``N`` families of classes, or auto, about 16
        classes in each (rr-svm, rr-lr, td, h-svm, h-rls, hm3, hblr-m1, hblr-m2, hblr-m3).
    anchor : float, default 0.01
        Graphs: pull of every class with edges towards zero; 0 is the papers' objective, without a certificate
        (rr-svm, rr-lr).
    positive_weight : float | str, default 1.0
        Weight of the losses of a class's own instances: a ``NUMBER``, or balanced (how rare they are, at most 100)
        (rr-svm, rr-lr, bsvm, blr, td, h-svm).
    internal_weight : float, default 1.0
        Weight of the edges between internal nodes (rr-svm, rr-lr).
    edge_weights : str, default "even"
        Trees: what the weight of an edge between internal nodes is multiplied by: even, by 1; depth, by the lower
        node's depth; size, by how many classes are below it, so that families stay near one another and classes
        are drawn less to them (rr-svm, rr-lr).
    cost_by : str, default "class"
        Graphs: what --C weighs: class, the losses of each class alike; degree, those of a class times its
        neighbours (and the anchor), so that one with many is not drawn off its instances (rr-svm, rr-lr).
    bias_pull : str, default "parent"
        What a class's bias is drawn to: its parent's, or zero, as without a structure (rr-svm, rr-lr).
    gap : float, default 0.01
        Stop when no weights could lower the objective P by more than this share: the certified relative gap
        (P-D)/P, D being the dual (rr-svm, rr-lr, bsvm, blr, td, h-svm, h-rls, mlr, rr-mlr, msvm, flatmult,
        hiermult, hsvm, transfer, ot, rr-msvm, hm3).
    schedule : str, default "twoblock"
        What a sweep solves at a time: twoblock, all classes and then all internal nodes at once; parity, even and
        odd levels in turn; colour, sets of nodes without an edge between them in turn; jacobi, all nodes side by
        side (colour, jacobi of rr-svm, rr-lr).
    colouring : str, default "largest-first"
        Colour: order in which nodes get their colours, greedily (rr-svm, rr-lr).
    stiffness : str, default "support"
        Twoblock: on which features a class holds back its parent's step: those of its support vectors, or all,
        which is slower (rr-svm, rr-lr).
    momentum : str, default "fista"
        Twoblock: extrapolate the internal nodes from sweep to sweep, or don't (rr-svm, rr-lr).
    epochs : int, default 0
        At least ``N`` passes over the data for each class in a sweep; 0: three, with the squared hinge one in the
        first two sweeps (rr-svm, rr-lr, bsvm, blr).
    prior_shift : float, default 0.0
        Raise the scores of rare classes by ``T`` ln(n_max/n), n being the class's training instances, n_max those
        of the largest class; tune finds it (rr-svm, rr-lr, bsvm, blr, mlr, rr-mlr, msvm, flatmult, rr-msvm).
    prune : str, default "empty"
        Leaves of the hierarchy without instances: leave them out, or train them on negatives alone.
    max_sweeps : int, default 0
        Stop after ``N`` sweeps, 0 for no cap.
    max_time : float, default 0.0
        After ``S`` seconds solve nothing more, 0 for no cap: tasks under way end, one pass over the data certifies
        what is there, and the weights are written.
    rescale : str, default "slack"
        What the distance of two leaves multiplies: slack, the loss of the margin that is missing; margin, the
        margin that is asked for (hsvm).
    alpha : float, default 1.0
        Weight of the products of nodes with their ancestors; halved until the problem is convex (alpha_used in the
        report) (ot).
    label_loss : str, default "delta"
        What a predicted set of paths costs: delta counts wrong nodes, unif, sibl and subtree those whose parent is
        right, with equal weights, a parent's shared out among its children, or by the size of the subtree (hm3).
    iterations : int, default 2500
        ``N`` iterations of each chain, with the burn-in (corrmnl).
    burn_in : int, default 1000
        The first ``N`` iterations, which fit the step size and are no draws (corrmnl).
    chains : int, default 4
        ``N`` chains from places far apart, which run side by side (corrmnl).
    keep_draws : int, default 200
        Predictions average ``N`` draws, which the model holds, evenly from all chains (corrmnl).
    leapfrog : int, default 30
        ``N`` steps of a trajectory at most, each a pass over the data (corrmnl).
    inference : str, default "map"
        What stands for the posterior: map, the leaves' maxima with the variances of Laplace's approximation;
        variational, the normals of the greatest lower bound on the evidence (hblr-m1, hblr-m2, hblr-m3).
    covariance : str, default "full"
        Of a class's posterior: full, features squared numbers at a time; diagonal, for many features (hblr-m1,
        hblr-m2, hblr-m3).
    likelihood : str, default "binary"
        How classes meet: binary, each against all other instances, so that an instance may have several; softmax,
        all against each other, an instance having exactly one (hblr-m1, hblr-m2, hblr-m3).
    prior : str, default "fisher"
        Where the precisions' priors come from: fisher, the information that the instances hold on a class of its
        size; blr, on the class as a logistic regression with C = 1 sees it (hblr-m1, hblr-m2, hblr-m3).
    prior_inverse : str, default "diagonal"
        Inverse of that information: diagonal, feature by feature; full, for fewer features than instances, and few
        (hblr-m1, hblr-m2, hblr-m3).
    prior_scale : str, default "paper"
        Hblr-m1 and hblr-m3: what stands for all features in the one prior of a node: paper, their mean, in which
        rare ones dominate; median; df, their mean by how many instances have them (hblr-m1, hblr-m2, hblr-m3).
    tolerance : float, default 0.001
        Stop when all further rounds together would change no learned precision, and no mean relative to the
        largest one, by more than this share. Leaves are solved as exactly as it asks for, so a checkpoint goes on
        with the same tolerance alone (hblr-m1, hblr-m2, hblr-m3).
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
        Loss of an instance (default: the first that the method has) (hinge of rr-svm, bsvm, td, h-svm, hsvm,
        transfer, ot; squared-hinge of rr-svm, bsvm, td, h-svm).
    C : float, default 1.0
        Weight of the losses against the regularisation (rr-svm, rr-lr, bsvm, blr, td, h-svm, h-rls, mlr, rr-mlr,
        msvm, flatmult, hiermult, hsvm, transfer, ot, rr-msvm, hm3).
    bias : float, default 1.0
        Value of the bias feature, 0 for none.
    families : int | str, default "none"
        Data without a hierarchy: learn one from the data, with ``N`` families of classes, or auto, about 16
        classes in each (rr-svm, rr-lr, td, h-svm, h-rls, hm3, hblr-m1, hblr-m2, hblr-m3).
    anchor : float, default 0.01
        Graphs: pull of every class with edges towards zero; 0 is the papers' objective, without a certificate
        (rr-svm, rr-lr).
    positive_weight : float | str, default 1.0
        Weight of the losses of a class's own instances: a ``NUMBER``, or balanced (how rare they are, at most 100)
        (rr-svm, rr-lr, bsvm, blr, td, h-svm).
    internal_weight : float, default 1.0
        Weight of the edges between internal nodes (rr-svm, rr-lr).
    edge_weights : str, default "even"
        Trees: what the weight of an edge between internal nodes is multiplied by: even, by 1; depth, by the lower
        node's depth; size, by how many classes are below it, so that families stay near one another and classes
        are drawn less to them (rr-svm, rr-lr).
    cost_by : str, default "class"
        Graphs: what --C weighs: class, the losses of each class alike; degree, those of a class times its
        neighbours (and the anchor), so that one with many is not drawn off its instances (rr-svm, rr-lr).
    bias_pull : str, default "parent"
        What a class's bias is drawn to: its parent's, or zero, as without a structure (rr-svm, rr-lr).
    gap : float, default 0.01
        Stop when no weights could lower the objective P by more than this share: the certified relative gap
        (P-D)/P, D being the dual (rr-svm, rr-lr, bsvm, blr, td, h-svm, h-rls, mlr, rr-mlr, msvm, flatmult,
        hiermult, hsvm, transfer, ot, rr-msvm, hm3).
    schedule : str, default "twoblock"
        What a sweep solves at a time: twoblock, all classes and then all internal nodes at once; parity, even and
        odd levels in turn; colour, sets of nodes without an edge between them in turn; jacobi, all nodes side by
        side (colour, jacobi of rr-svm, rr-lr).
    colouring : str, default "largest-first"
        Colour: order in which nodes get their colours, greedily (rr-svm, rr-lr).
    stiffness : str, default "support"
        Twoblock: on which features a class holds back its parent's step: those of its support vectors, or all,
        which is slower (rr-svm, rr-lr).
    momentum : str, default "fista"
        Twoblock: extrapolate the internal nodes from sweep to sweep, or don't (rr-svm, rr-lr).
    epochs : int, default 0
        At least ``N`` passes over the data for each class in a sweep; 0: three, with the squared hinge one in the
        first two sweeps (rr-svm, rr-lr, bsvm, blr).
    prior_shift : float, default 0.0
        Raise the scores of rare classes by ``T`` ln(n_max/n), n being the class's training instances, n_max those
        of the largest class; tune finds it (rr-svm, rr-lr, bsvm, blr, mlr, rr-mlr, msvm, flatmult, rr-msvm).
    prune : str, default "empty"
        Leaves of the hierarchy without instances: leave them out, or train them on negatives alone.
    max_sweeps : int, default 0
        Stop after ``N`` sweeps, 0 for no cap.
    max_time : float, default 0.0
        After ``S`` seconds solve nothing more, 0 for no cap: tasks under way end, one pass over the data certifies
        what is there, and the weights are written.
    rescale : str, default "slack"
        What the distance of two leaves multiplies: slack, the loss of the margin that is missing; margin, the
        margin that is asked for (hsvm).
    alpha : float, default 1.0
        Weight of the products of nodes with their ancestors; halved until the problem is convex (alpha_used in the
        report) (ot).
    label_loss : str, default "delta"
        What a predicted set of paths costs: delta counts wrong nodes, unif, sibl and subtree those whose parent is
        right, with equal weights, a parent's shared out among its children, or by the size of the subtree (hm3).
    iterations : int, default 2500
        ``N`` iterations of each chain, with the burn-in (corrmnl).
    burn_in : int, default 1000
        The first ``N`` iterations, which fit the step size and are no draws (corrmnl).
    chains : int, default 4
        ``N`` chains from places far apart, which run side by side (corrmnl).
    keep_draws : int, default 200
        Predictions average ``N`` draws, which the model holds, evenly from all chains (corrmnl).
    leapfrog : int, default 30
        ``N`` steps of a trajectory at most, each a pass over the data (corrmnl).
    inference : str, default "map"
        What stands for the posterior: map, the leaves' maxima with the variances of Laplace's approximation;
        variational, the normals of the greatest lower bound on the evidence (hblr-m1, hblr-m2, hblr-m3).
    covariance : str, default "full"
        Of a class's posterior: full, features squared numbers at a time; diagonal, for many features (hblr-m1,
        hblr-m2, hblr-m3).
    likelihood : str, default "binary"
        How classes meet: binary, each against all other instances, so that an instance may have several; softmax,
        all against each other, an instance having exactly one (hblr-m1, hblr-m2, hblr-m3).
    prior : str, default "fisher"
        Where the precisions' priors come from: fisher, the information that the instances hold on a class of its
        size; blr, on the class as a logistic regression with C = 1 sees it (hblr-m1, hblr-m2, hblr-m3).
    prior_inverse : str, default "diagonal"
        Inverse of that information: diagonal, feature by feature; full, for fewer features than instances, and few
        (hblr-m1, hblr-m2, hblr-m3).
    prior_scale : str, default "paper"
        Hblr-m1 and hblr-m3: what stands for all features in the one prior of a node: paper, their mean, in which
        rare ones dominate; median; df, their mean by how many instances have them (hblr-m1, hblr-m2, hblr-m3).
    tolerance : float, default 0.001
        Stop when all further rounds together would change no learned precision, and no mean relative to the
        largest one, by more than this share. Leaves are solved as exactly as it asks for, so a checkpoint goes on
        with the same tolerance alone (hblr-m1, hblr-m2, hblr-m3).
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
