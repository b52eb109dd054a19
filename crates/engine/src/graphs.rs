//! Questions about graphs, as SQL over a relation of edges.
//!
//! Each function gives the text of a query, for SELECT or for a view that is kept current. The
//! relation has the columns `src`, `dst` and, for weighted paths, `weight`, all `bigint`.
//! docs/graphs.md explains the queries; a test holds both texts against each other.

/// A relation of edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edges {
    relation: String,
}

impl Edges {
    /// The edges in a table or view of that name.
    pub fn of(relation: &str) -> Edges {
        Edges { relation: relation.to_string() }
    }

    /// Nodes that can be reached from a node, itself among them: `node`.
    pub fn reach(&self, from: i64) -> String {
        self.query(include_str!("graphs/reach.sql"), from)
    }

    /// Least numbers of edges on ways from a node: `node`, `hops`.
    pub fn hops(&self, from: i64) -> String {
        self.query(include_str!("graphs/hops.sql"), from)
    }

    /// Least sums of weights on ways from a node: `node`, `distance`. Weights are not negative.
    pub fn distances(&self, from: i64) -> String {
        self.query(include_str!("graphs/distances.sql"), from)
    }

    /// Connected components, directions aside: `node`, and the least node of its component.
    pub fn components(&self) -> String {
        self.query(include_str!("graphs/components.sql"), 0)
    }

    /// Strongly connected components: `node`, and the least node of its component.
    pub fn strong_components(&self) -> String {
        self.query(include_str!("graphs/strong_components.sql"), 0)
    }

    /// Nodes that have `k` neighbours or more among such nodes, directions aside: `node`.
    pub fn core(&self, k: i64) -> String {
        self.query(include_str!("graphs/core.sql"), k)
    }

    /// Triples of nodes that are all linked, each once, least node first: `a`, `b`, `c`.
    pub fn triangles(&self) -> String {
        self.query(include_str!("graphs/triangles.sql"), 0)
    }

    /// Sets of four nodes that are all linked, each once, least node first: `a`, `b`, `c`, `d`.
    pub fn cliques_of_four(&self) -> String {
        self.query(include_str!("graphs/cliques_of_four.sql"), 0)
    }

    /// The template with its number and relation.
    fn query(&self, template: &str, number: i64) -> String {
        let relation = format!("\"{}\"", self.relation.replace('"', "\"\""));
        let is_plain = self.relation.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        let relation = if is_plain { self.relation.clone() } else { relation };
        template.trim_end().replace("$1", &number.to_string()).replace("edges", &relation)
    }
}
