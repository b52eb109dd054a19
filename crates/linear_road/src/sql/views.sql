-- Linear Road as views: what each report means, statistics of segments, accidents, tolls, accounts.
-- The rules are those of docs/linear_road.md; times are seconds, minutes begin with 1.
-- Views that others build on are materialized: each is planned and kept once.

CREATE TABLE reports (
    time int NOT NULL, vid int NOT NULL, speed int NOT NULL, xway int NOT NULL,
    lane int NOT NULL, direction int NOT NULL, segment int NOT NULL, position int NOT NULL
);
CREATE TABLE balance_queries (time int NOT NULL, vid int NOT NULL, query int NOT NULL);
CREATE TABLE expenditure_queries (
    time int NOT NULL, vid int NOT NULL, query int NOT NULL, xway int NOT NULL, day int NOT NULL
);
CREATE TABLE history (vid int NOT NULL, day int NOT NULL, xway int NOT NULL, toll int NOT NULL);

-- Each report beside the one before and the next one of its vehicle. Places are numbers: road (expressway and
-- direction), lane and position. A report is the same as the one before if the vehicle stands, without a gap.
CREATE MATERIALIZED VIEW movements AS
SELECT time, minute, vid, xway, lane, direction, segment, place, time_1, place_1, time_next,
       coalesce(time - time_1 <= 60 AND place = place_1, false) AS is_same
FROM (
    SELECT time, minute, vid, xway, lane, direction, segment, place,
           lag(time) OVER trip AS time_1, lag(place) OVER trip AS place_1, lead(time) OVER trip AS time_next
    FROM (
        SELECT time, time / 60 + 1 AS minute, vid, xway, lane, direction, segment,
               (CAST(xway AS bigint) * 2 + direction) * 4224000 + lane * 528000 + position AS place
        FROM reports
    ) AS placed
    WINDOW trip AS (PARTITION BY vid ORDER BY time)
) AS moved;

-- Entries into segments (and exits by lane 4 in new ones), each the first of a trip or not.
CREATE MATERIALIZED VIEW crossings AS
SELECT time, minute, vid, xway, lane, direction, segment, is_new_trip
FROM (
    SELECT time, minute, vid, xway, lane, direction, segment, place_1 % 528000 / 5280 AS segment_1,
           time_1 IS NULL OR time - time_1 > 60 OR (place_1 / 528000 % 8 = 4 AND lane <> 4)
           OR place_1 / 4224000 <> place / 4224000 AS is_new_trip
    FROM movements
) AS moved
WHERE is_new_trip OR segment_1 <> segment;

-- Vehicles by segment and minute, and the sum of their mean speeds in sixtieths (whole for up to six reports).
CREATE VIEW minutes AS
SELECT xway, direction, segment, minute, count(*) AS vehicles, sum(speeds * 60 / n) AS speeds
FROM (
    SELECT xway, direction, segment, time / 60 + 1 AS minute, vid, sum(speed) AS speeds, count(*) AS n
    FROM reports
    GROUP BY xway, direction, segment, time / 60 + 1, vid
) AS vehicle
GROUP BY xway, direction, segment, minute;

-- In force in a minute: vehicles of the minute before, and the mean of the mean speeds of five minutes.
-- (A mean that is whole may come out just below: it lies further from other means than the summand.)
CREATE MATERIALIZED VIEW statistics AS
SELECT xway, direction, segment, minute + back AS minute,
       CAST(floor(avg(CAST(speeds AS double precision) / (60 * vehicles)) + 0.000000001) AS int) AS speed,
       CAST(sum(CASE WHEN back = 1 THEN vehicles ELSE 0 END) AS int) AS vehicles
FROM minutes CROSS JOIN (VALUES (1), (2), (3), (4), (5)) AS backs (back)
GROUP BY xway, direction, segment, minute + back;

-- Reports of stopped vehicles: the fourth identical report in a row, and those that follow.
CREATE MATERIALIZED VIEW stopped AS
SELECT time, minute, time_next, vid, xway, direction, segment, place
FROM (
    SELECT time, minute, time_next, vid, xway, lane, direction, segment, place, is_same,
           lag(is_same) OVER trip AS same_1, lag(is_same, 2) OVER trip AS same_2
    FROM movements
    WINDOW trip AS (PARTITION BY vid ORDER BY time)
) AS stands
WHERE lane <> 4 AND is_same AND same_1 AND same_2;

-- Minutes with evidence of an accident: a stopped vehicle reports where another one stands.
CREATE MATERIALIZED VIEW accidents AS
SELECT DISTINCT a.xway, a.direction, a.segment, a.minute
FROM stopped AS a
JOIN stopped AS b ON a.place = b.place
WHERE a.vid <> b.vid AND b.time <= a.time AND (b.time_next IS NULL OR a.time < b.time_next);

-- The nearest accident downstream of each entry: how many segments ahead.
CREATE MATERIALIZED VIEW warned AS
SELECT c.time, c.vid, min(CASE c.direction WHEN 0 THEN a.segment - c.segment ELSE c.segment - a.segment END) AS ahead
FROM crossings AS c
JOIN accidents AS a ON a.xway = c.xway AND a.direction = c.direction AND a.minute = c.minute - 1
WHERE c.lane <> 4
  AND CASE c.direction WHEN 0 THEN a.segment - c.segment ELSE c.segment - a.segment END BETWEEN 0 AND 4
GROUP BY c.time, c.vid;

-- Accident notifications.
CREATE VIEW accident_notifications AS
SELECT c.time, c.vid, CASE c.direction WHEN 0 THEN c.segment + w.ahead ELSE c.segment - w.ahead END AS segment,
       c.xway, c.direction
FROM warned AS w
JOIN crossings AS c ON c.vid = w.vid AND c.time = w.time;

-- Toll notifications: at each entry, also if nothing is due.
CREATE MATERIALIZED VIEW tolls AS
SELECT c.vid, c.time, coalesce(s.speed, -1) AS speed,
       CASE WHEN w.ahead IS NULL AND s.speed < 40 AND s.vehicles > 50
            THEN 2 * (s.vehicles - 50) * (s.vehicles - 50) ELSE 0 END AS toll
FROM crossings AS c
LEFT JOIN statistics AS s
  ON s.xway = c.xway AND s.direction = c.direction AND s.segment = c.segment AND s.minute = c.minute
LEFT JOIN warned AS w ON w.vid = c.vid AND w.time = c.time
WHERE c.lane <> 4;

-- What is charged at each crossing: the toll told at the crossing before, unless a trip begins.
CREATE MATERIALIZED VIEW charges AS
SELECT vid, time, CASE WHEN is_new_trip THEN 0 ELSE coalesce(told, 0) END AS cents
FROM (
    SELECT c.vid, c.time, c.is_new_trip, lag(t.toll) OVER (PARTITION BY c.vid ORDER BY c.time) AS told
    FROM crossings AS c
    LEFT JOIN tolls AS t ON t.vid = c.vid AND t.time = c.time
) AS announced;

-- Answers to balance queries.
CREATE VIEW balances AS
SELECT q.time, q.query, coalesce(max(c.time), q.time) AS result_time, CAST(coalesce(sum(c.cents), 0) AS int) AS balance
FROM balance_queries AS q
LEFT JOIN charges AS c ON c.vid = q.vid AND c.time <= q.time
GROUP BY q.time, q.query;

-- Answers to expenditure queries.
CREATE VIEW expenditures AS
SELECT q.time, q.query, h.toll AS balance
FROM expenditure_queries AS q
JOIN history AS h ON h.vid = q.vid AND h.day = q.day AND h.xway = q.xway;
