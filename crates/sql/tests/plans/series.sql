select g from generate_series(1, 3) as g;
select count(*) from generate_series(1, 1000000) as g;
select count(*) from generate_series(timestamp '2020-01-01', timestamp '2024-01-01', interval '1 hour') as g;
