\set length greatest(1, int(128 * exp(random_gaussian(-4000, 4000, 4.0) / 1000.0)))
INSERT INTO nodetable (type, version, time, data)
VALUES (2048, 0, 0, left(repeat('0123456789abcdef', 512), :length)) RETURNING id;
