-- Sets: one variable, nothing carried.
with recursive r(x) as (select k from u where a = 1 union select u.k from u join r on u.a = r.x) select x from r;
-- A condition outside stays outside, and so do columns that nobody reads.
with recursive r(x, y) as (select a, k from u union select r.x, u.k from u join r on u.a = r.y) select y from r where x = 7;
-- Bags: rows carry the number of their round.
with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select sum(n) from r;
-- A window function looks at the rows of one round, also over sets.
with recursive r(n, m) as (select a, b from t union select n + 1, row_number() over (order by n)::integer from r where n < 5) select * from r;
-- Groups of one round.
with recursive r(n) as (select a from t union all (select n / 2 from r where n > 1 group by n / 2)) select * from r;
-- A loop that is read twice is there twice, equal.
with recursive r(x) as (select a from u union select u.k from u join r on u.a = r.x) select p.x from r p join r q on p.x = q.x + 1;
-- A subquery over other tables.
with recursive r(x) as (select a from u where a = 1 union select u.k from u join r on u.a = r.x where exists (select 1 from t where t.a = u.k) and u.k not in (select b from t where b is not null)) select x from r;
-- A loop within a loop.
with recursive outside(n) as (select 1 union select m from (with recursive inside(m) as (select 10 union select m - 1 from inside where m > 8) select m from inside) i join outside on m > n) select n from outside;
-- Two variables, with an aggregate and a negation, and a limit of rounds.
with mutually recursive (return at recursion limit 10) p (x bigint) as (select a from t except select y from q), q (y bigint) as (select max(x) from p union select k from u where k in (select x from p)) select x from p;
-- CYCLE carries the path.
with recursive r(x) as (select 1 union all select u.k from u join r on u.a = r.x) cycle x set is_cycle using path select x, is_cycle from r;
-- SEARCH carries the order.
with recursive r(x) as (select a from u where a = 1 union all select u.k from u join r on u.a = r.x) search breadth first by x set ord select x from r order by ord;
-- A join of many rows with few: the variable stays where it is written.
with recursive r(x, d) as (select a, 0 from u where b = 3 union select u.k, r.d + 1 from r, u, t where u.a = r.x and t.a = u.k and t.b = 4 and r.d < 9) select x, min(d) from r group by x;
-- A query that reads no variable is no part of the loop.
with mutually recursive links (a bigint, b bigint) as (select a, k from u union select k, a from u), c (x bigint, l bigint) as (select x, min(l) from (select a as x, a as l from links union all select links.b, c.l from c join links on links.a = c.x) as w group by x) select x, l from c;
