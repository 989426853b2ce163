-- Payloads are log-normal around LinkBench's medians, 128 bytes for nodes and 8 for links. Links
-- of a node: Pareto with shape 1.5, at least one and at most 1000, about three (assumed; the
-- published distribution is a table). `k` numbers a node's links and gives the other end.
SELECT setseed(0.5);
INSERT INTO nodetable (type, version, time, data)
SELECT 2048, 0, 0, left(repeat(md5(i::text), 64),
    greatest(1, (128 * exp(sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random())))::int))
FROM generate_series(1, :nodes) AS i;
INSERT INTO linktable
SELECT i, 1 + (i * 7919 + k * 104729) % :nodes, 123456789 + k % 2, 1, left(md5(k::text),
    greatest(1, (8 * exp(sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random())))::int)), k, 0
FROM (SELECT i, least(1000, power(1 - random(), -1 / 1.5))::int AS degree
      FROM generate_series(1, :nodes) AS i) AS nodes,
     generate_series(1, degree) AS k
ON CONFLICT DO NOTHING;
INSERT INTO counttable
SELECT id1, link_type, count(*), 0, 0 FROM linktable GROUP BY id1, link_type;
ANALYZE;
