//! Questions about graphs, as SQL over a relation of edges.
//!
//! Each function gives the text of a query, for SELECT or for a view that is kept current. The
//! relation has the columns `src`, `dst` and, for weighted paths, `weight`, all `bigint`.
//! docs/graphs.md explains the queries; a test holds both texts against each other.
//!
//! Questions with parameters that come and go ([`Edges::look_up`] and the three after it) are views
//! over a second relation, which holds the parameters. All four read the edges by one index,
//! [`Edges::index`].

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

    /// PageRank with damping 0.85 after that many rounds: `node`, `rank`.
    ///
    /// Ranks are decimals of fifteen places that sum up to 1, but for what rounding down leaves. So
    /// they are the same in whatever order edges came. Source: LDBC Graphalytics, PageRank.
    pub fn page_rank(&self, rounds: u32) -> String {
        // (The loop's first round gives the ranks at the beginning.)
        self.query(include_str!("graphs/page_rank.sql"), i64::from(rounds) + 1)
    }

    /// Communities after that many rounds in which a node takes the label that most of its
    /// neighbours have, the least of several: `node`, `label`.
    ///
    /// A neighbour by edges in both directions counts twice. Source: LDBC Graphalytics, CDLP.
    pub fn label_propagation(&self, rounds: u32) -> String {
        self.query(include_str!("graphs/label_propagation.sql"), i64::from(rounds) + 1)
    }

    /// Local clustering coefficients: `node`, `coefficient`, the share of the pairs of neighbours,
    /// in both orders, that an edge leads through. Source: LDBC Graphalytics, LCC.
    pub fn clustering(&self) -> String {
        self.query(include_str!("graphs/clustering.sql"), 0)
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

    /// The statement that makes the index which the questions below share.
    pub fn index(&self) -> String {
        let name = quoted(&format!("{}_by_src", self.relation));
        format!("CREATE INDEX {name} ON {} (src)", quoted(&self.relation))
    }

    /// How many edges leave each node of the relation `asked`, whose column is `node`: `node`,
    /// `degree`. A node without edges has no row.
    pub fn look_up(&self, asked: &str) -> String {
        self.question(include_str!("graphs/look_up.sql"), asked)
    }

    /// Ends of the edges that leave the nodes in `asked`: `node`, `found`.
    pub fn one_hop(&self, asked: &str) -> String {
        self.question(include_str!("graphs/one_hop.sql"), asked)
    }

    /// Ends of the ways of two edges from the nodes in `asked`, one row a way: `node`, `found`.
    pub fn two_hops(&self, asked: &str) -> String {
        self.question(include_str!("graphs/two_hops.sql"), asked)
    }

    /// Ways of four edges between the pairs of nodes in `asked`, whose columns are `src` and `dst`:
    /// `src`, the nodes between, `dst`. Costs the ways of four edges that leave `src`.
    pub fn paths_of_four(&self, asked: &str) -> String {
        self.question(include_str!("graphs/paths_of_four.sql"), asked)
    }

    /// The template with its number and relation.
    fn query(&self, template: &str, number: i64) -> String {
        filled(template, &[("edges", &quoted(&self.relation)), ("$1", &number.to_string())])
    }

    /// The template with its relations.
    fn question(&self, template: &str, asked: &str) -> String {
        filled(template, &[("edges", &quoted(&self.relation)), ("asked", &quoted(asked))])
    }
}

/// The template with other words for some.
fn filled(template: &str, words: &[(&str, &str)]) -> String {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let mut filled = String::with_capacity(template.len());
    let mut rest = template.trim_end();
    while let Some(begin) = rest.find(is_of_word) {
        let (before, from) = rest.split_at(begin);
        let (word, after) = from.split_at(from.find(|c| !is_of_word(c)).unwrap_or(from.len()));
        filled.push_str(before);
        filled.push_str(words.iter().find(|(of, _)| *of == word).map_or(word, |(_, with)| with));
        rest = after;
    }
    filled + rest
}

/// The name as SQL has to have it.
fn quoted(name: &str) -> String {
    let is_plain = name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    if is_plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}
