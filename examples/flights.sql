-- The flights that left New York in 2013, replayed by scheduled departure, and the questions that stay asked meanwhile.
--
--   anabranch -f examples/flights.sql          (from the root of the repository)
--   anabranch demo                             the same, with the answers redrawn as they change
--
-- Where the data comes from: examples/data/README.md. The answers are checked by tests/compare/flights.py.

-- What is known beforehand.
CREATE SOURCE airlines WITH (connector = 'file', path = 'examples/data/airlines.parquet');
CREATE SOURCE airports WITH (connector = 'file', path = 'examples/data/airports.parquet');
CREATE SOURCE planes   WITH (connector = 'file', path = 'examples/data/planes.parquet');
CREATE SOURCE weather  WITH (connector = 'file', path = 'examples/data/weather.parquet');

-- What streams in. `rate = '20000'` would replay 20,000 flights a second; 'max' goes as fast as the views keep up.
CREATE SOURCE flights  WITH (connector = 'file', path = 'examples/data/flights.parquet', rate = 'max');

-- How late is each carrier?
CREATE MATERIALIZED VIEW delays_by_carrier AS
SELECT a.name AS carrier,
       count(*) AS flights,
       count(*) FILTER (WHERE f.arr_delay IS NULL) AS not_arrived,
       round(avg(f.dep_delay), 1) AS departs_late_min,
       round(avg(f.arr_delay), 1) AS arrives_late_min,
       max(f.arr_delay) AS worst_min
FROM flights f
JOIN airlines a ON a.carrier = f.carrier
GROUP BY a.name;

-- Which routes are the worst right now? Only routes that were flown often enough to tell.
CREATE MATERIALIZED VIEW worst_routes AS
SELECT f.origin, f.dest, p.name AS airport, count(*) AS flights, round(avg(f.arr_delay), 1) AS arrives_late_min
FROM flights f
LEFT JOIN airports p ON p.faa = f.dest
WHERE f.arr_delay IS NOT NULL
GROUP BY f.origin, f.dest, p.name
HAVING count(*) >= 30
ORDER BY arrives_late_min DESC, f.origin, f.dest
LIMIT 10;

-- Which aircraft fly most?
CREATE MATERIALIZED VIEW top_aircraft AS
SELECT p.tailnum, p.manufacturer, p.model, p.seats, count(*) AS flights, sum(f.distance) AS miles
FROM flights f
JOIN planes p ON p.tailnum = f.tailnum
WHERE f.air_time IS NOT NULL
GROUP BY p.tailnum, p.manufacturer, p.model, p.seats
ORDER BY miles DESC, p.tailnum
LIMIT 10;

-- Does the weather at the origin, in the hour of departure, make flights late?
CREATE MATERIALIZED VIEW delays_by_weather AS
SELECT CASE WHEN w.visib < 2 THEN '1 below 2 miles' WHEN w.visib < 10 THEN '2 below 10 miles' ELSE '3 clear' END AS visibility,
       CASE WHEN w.wind_speed IS NULL THEN 'unknown' WHEN w.wind_speed < 10 THEN '1 light'
            WHEN w.wind_speed < 20 THEN '2 fresh' ELSE '3 strong' END AS wind,
       count(*) AS flights,
       round(avg(f.dep_delay), 1) AS departs_late_min,
       count(*) FILTER (WHERE f.dep_delay > 60) AS over_an_hour
FROM flights f
JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour
GROUP BY 1, 2;

-- How many flights had each delay? Small however many flights there are, so what is built on it is cheap to keep current.
CREATE MATERIALIZED VIEW arrival_delays AS
SELECT arr_delay, count(*) AS flights
FROM flights
WHERE arr_delay IS NOT NULL
GROUP BY arr_delay;

-- What share of flights is later than the average? The average moves with every flight, and with it the answer.
CREATE MATERIALIZED VIEW later_than_average AS
SELECT h.later, n.flights, round(100.0 * h.later / n.flights, 2) AS percent, round(n.average, 2) AS average_min
FROM (SELECT sum(flights) AS later FROM arrival_delays
      WHERE arr_delay > (SELECT sum(arr_delay * flights) * 1.0 / sum(flights) FROM arrival_delays)) AS h
CROSS JOIN (SELECT sum(flights) AS flights, sum(arr_delay * flights) * 1.0 / sum(flights) AS average FROM arrival_delays) AS n;

-- How busy is each airport, month by month?
CREATE MATERIALIZED VIEW by_origin_and_month AS
SELECT origin, month, count(*) AS flights, count(*) - count(dep_delay) AS cancelled, round(avg(dep_delay), 1) AS departs_late_min
FROM flights
GROUP BY origin, month;

-- How wide is each carrier's net?
CREATE MATERIALIZED VIEW carrier_reach AS
SELECT carrier, count(DISTINCT dest) AS destinations, count(DISTINCT tailnum) AS aircraft, count(DISTINCT origin || dest) AS routes
FROM flights
GROUP BY carrier;
