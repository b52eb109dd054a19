//! What happens to the data after it is loaded: statements that any SQL database understands, so
//! that the peer which gives the expected answers makes the same changes itself.

/// A named group of statements, after which all answers are compared.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// Its name, also of its folder of results.
    pub name: &'static str,
    /// The statements.
    pub statements: &'static [&'static str],
}

/// The phases, the load (without statements) being the first.
pub const PHASES: [Phase; 4] = [
    Phase { name: "loaded", statements: &[] },
    Phase {
        name: "deleted",
        statements: &["delete from lineitem where l_orderkey % 10 = 3", "delete from orders where o_orderkey % 10 = 3"],
    },
    Phase {
        name: "updated",
        statements: &[
            "update customer set c_acctbal = c_acctbal + 1000.00, c_mktsegment = 'BUILDING' where c_custkey % 20 = 7",
            "update customer set c_phone = '13' || substring(c_phone from 3) where c_custkey % 30 = 5",
            "update part set p_type = 'ECONOMY ANODIZED STEEL', p_size = 15 where p_partkey % 25 = 4",
            "update part set p_name = 'forest green ' || p_name, p_brand = 'Brand#23' where p_partkey % 40 = 9",
            "update supplier set s_nationkey = 20 where s_suppkey % 10 = 1",
        ],
    },
    Phase {
        name: "emptied",
        statements: &["delete from lineitem where l_shipmode = 'MAIL'", "delete from nation where n_name = 'GERMANY'"],
    },
];
