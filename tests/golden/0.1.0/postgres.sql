--
-- PostgreSQL database dump
--

\restrict 0y64kfrr3cnr1brag7ZXGYGYOkg5NJO2F6KGCy9gWDENXeIIROPHmR3iyT5EBr1

-- Dumped from database version 18.4
-- Dumped by pg_dump version 18.4

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: penstock_ledger; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.penstock_ledger (
    sink text NOT NULL,
    lineage text NOT NULL,
    batch bigint NOT NULL,
    epoch bigint NOT NULL,
    rows bigint NOT NULL,
    fingerprint text NOT NULL,
    table_name text NOT NULL
);


--
-- Name: penstock_retired; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.penstock_retired (
    table_name text NOT NULL,
    lineage text NOT NULL
);


--
-- Name: totals; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.totals (
    team text,
    window_start timestamp with time zone,
    window_end timestamp with time zone,
    points bigint,
    share double precision,
    paid numeric(10,2),
    best jsonb,
    pane_index bigint,
    pane_timing text,
    pane_final boolean
)
WITH (fillfactor='70');


--
-- Name: totals_history; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.totals_history (
    team text,
    window_start timestamp with time zone,
    window_end timestamp with time zone,
    points bigint,
    share double precision,
    paid numeric(10,2),
    best jsonb,
    pane_index bigint,
    pane_timing text,
    pane_final boolean,
    op smallint
);


--
-- Data for Name: penstock_ledger; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.penstock_ledger VALUES ('golden/panes/totals', '3f2a', 2, 1, 4, 'f50b92667cc454c5', 'totals');


--
-- Data for Name: penstock_retired; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.penstock_retired VALUES ('totals', '91bc');


--
-- Data for Name: totals; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.totals VALUES ('amber', '2026-05-01 12:01:00+00', '2026-05-01 12:02:00+00', 11, 0.25, NULL, '[1, 1]', 0, 'early', false);
INSERT INTO public.totals VALUES ('azure', '2026-05-01 12:01:00+00', '2026-05-01 12:02:00+00', 11, 0.25, NULL, '[1, 1]', 0, 'early', false);
INSERT INTO public.totals VALUES ('amber', '2026-05-01 12:00:00+00', '2026-05-01 12:01:00+00', 20, 0.5, NULL, '[2, 0]', 2, 'early', false);
INSERT INTO public.totals VALUES ('amber', '2026-05-01 12:02:00+00', '2026-05-01 12:03:00+00', 22, 0.5, NULL, '[2, 2]', 0, 'early', false);
INSERT INTO public.totals VALUES ('azure', '2026-05-01 12:00:00+00', '2026-05-01 12:01:00+00', 20, 0.5, NULL, '[2, 0]', 2, 'early', false);
INSERT INTO public.totals VALUES ('azure', '2026-05-01 12:02:00+00', '2026-05-01 12:03:00+00', 22, 0.5, NULL, '[2, 2]', 0, 'early', false);


--
-- Data for Name: totals_history; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.totals_history VALUES ('amber', '2026-05-01 12:00:00+00', '2026-05-01 12:01:00+00', 0, 0, NULL, '[0, 0]', 0, 'early', false, 1);
INSERT INTO public.totals_history VALUES ('azure', '2026-05-01 12:00:00+00', '2026-05-01 12:01:00+00', 0, 0, NULL, '[0, 0]', 0, 'early', false, 1);
INSERT INTO public.totals_history VALUES ('amber', '2026-05-01 12:00:00+00', '2026-05-01 12:01:00+00', 10, 0.25, NULL, '[1, 0]', 1, 'early', false, 1);
INSERT INTO public.totals_history VALUES ('amber', '2026-05-01 12:01:00+00', '2026-05-01 12:02:00+00', 11, 0.25, NULL, '[1, 1]', 0, 'early', false, 1);
INSERT INTO public.totals_history VALUES ('azure', '2026-05-01 12:00:00+00', '2026-05-01 12:01:00+00', 10, 0.25, NULL, '[1, 0]', 1, 'early', false, 1);
INSERT INTO public.totals_history VALUES ('azure', '2026-05-01 12:01:00+00', '2026-05-01 12:02:00+00', 11, 0.25, NULL, '[1, 1]', 0, 'early', false, 1);
INSERT INTO public.totals_history VALUES ('amber', '2026-05-01 12:00:00+00', '2026-05-01 12:01:00+00', 20, 0.5, NULL, '[2, 0]', 2, 'early', false, 1);
INSERT INTO public.totals_history VALUES ('amber', '2026-05-01 12:02:00+00', '2026-05-01 12:03:00+00', 22, 0.5, NULL, '[2, 2]', 0, 'early', false, 1);
INSERT INTO public.totals_history VALUES ('azure', '2026-05-01 12:00:00+00', '2026-05-01 12:01:00+00', 20, 0.5, NULL, '[2, 0]', 2, 'early', false, 1);
INSERT INTO public.totals_history VALUES ('azure', '2026-05-01 12:02:00+00', '2026-05-01 12:03:00+00', 22, 0.5, NULL, '[2, 2]', 0, 'early', false, 1);


--
-- Name: penstock_ledger penstock_ledger_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.penstock_ledger
    ADD CONSTRAINT penstock_ledger_pkey PRIMARY KEY (sink);


--
-- Name: penstock_retired penstock_retired_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.penstock_retired
    ADD CONSTRAINT penstock_retired_pkey PRIMARY KEY (table_name, lineage);


--
-- Name: totals_team_window_start_window_end_idx; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX totals_team_window_start_window_end_idx ON public.totals USING btree (team, window_start, window_end) NULLS NOT DISTINCT;


--
-- PostgreSQL database dump complete
--

\unrestrict 0y64kfrr3cnr1brag7ZXGYGYOkg5NJO2F6KGCy9gWDENXeIIROPHmR3iyT5EBr1

