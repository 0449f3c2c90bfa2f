"""C and loss by scikit-learn's grid search."""

from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split

from taxon import HierarchicalClassifier

X, y = load_digits(return_X_y=True)
X = X / 16
round_or_straight = {"round": ["0", "3", "6", "8", "9"], "straight": ["1", "2", "4", "5", "7"]}
train, test, y_train, y_test = train_test_split(X, y, random_state=0)
search = GridSearchCV(HierarchicalClassifier(hierarchy=round_or_straight), {"C": [0.1, 1.0], "loss": ["hinge", "squared-hinge"]}, cv=3)
search.fit(train, y_train)
print(search.best_params_, f"{search.score(test, y_test):.3f}", f"gap {search.best_estimator_.report_['gap']:.1e}")
