/**
 * Which processes live, and which of them does the work that only one may do. Where the time decides, it is never later than the
 * server's own, if there is one: a process whose clock runs ahead takes nothing that another one still holds.
 */
import type { NodeStore } from '../../../domain/service-nodes/node-store.ts'
import { all, chore, defineStore, get, read, relaxed, report, run, together } from '../statements/operation.ts'
import { command, query, selectFrom, toRows, type Words } from '../statements/statement.ts'
import { node } from '../tables/nodes.ts'
import { encode, integer, json, nullable, shape, text } from '../tables/table.ts'

/** What the server's clock shows, not when its transaction began. SQLite has the time of this machine. */
export const SERVER_TIME = '(extract(epoch FROM clock_timestamp()) * 1000)::float8'

/** The time that the caller believes in (`:now`), or the server's if that is earlier. */
export function noLaterThanNow({ either }: Words): string {
  return either(':now', `(SELECT least(:now::bigint, floor(${SERVER_TIME})::bigint))`)
}

const BEAT = query(
  'nodes.beat',
  shape({ time: nullable(integer()) }),
  ({ either }) => `
    INSERT INTO node (id, started_at, seen_at, alive_until, about) VALUES (:id, :now, :now, :aliveUntil, :about)
    ON CONFLICT (id) DO UPDATE SET seen_at = :now, alive_until = :aliveUntil, about = :about
    RETURNING ${either('NULL', SERVER_TIME)} AS time`,
)
// Names are taken in their order, so that two processes that want the same ones do not wait for each other.
const TAKE = query(
  'nodes.take',
  shape({ name: text() }),
  (words) => `
    INSERT INTO singleton AS held (name, node_id, held_since, held_until)
    SELECT name, :id, :now, until FROM ${words.rows(':wanted', { name: 'text', until: 'bigint' })} AS wanted WHERE true ORDER BY name
    ON CONFLICT (name) DO UPDATE SET node_id = :id, held_until = excluded.held_until,
      held_since = CASE WHEN held.node_id = :id AND held.held_until > :now THEN held.held_since ELSE :now END
    WHERE held.node_id = :id OR held.held_until <= ${noLaterThanNow(words)}
    RETURNING name`,
)
const LEAVE = command('nodes.leave', 'DELETE FROM node WHERE id = :nodeId')
const LEAVE_WORK = command('nodes.leaveWork', 'DELETE FROM singleton WHERE node_id = :nodeId')
const LIST = query('nodes.list', node, selectFrom(node, 'ORDER BY id'))
// Held jobs and running calls are never more than there are workers and connections: counting them all is cheap.
const HOLDINGS = query(
  'nodes.holdings',
  shape({ nodeId: text(), jobs: integer(), calls: integer(), names: json<(string | null)[]>() }),
  ({ either }) => `
    SELECT node_id, sum(jobs) AS jobs, sum(calls) AS calls, ${either('json_group_array(name)', 'json_agg(name)::text')} AS names
    FROM (
      SELECT worker_id AS node_id, count(*) AS jobs, 0 AS calls, NULL AS name FROM job ${either('INDEXED BY job_lease', '')}
      WHERE status IN ('running', 'canceling') AND worker_id IS NOT NULL GROUP BY worker_id
      UNION ALL
      SELECT owner, 0, count(*), NULL FROM router_call
      WHERE state = 'running' AND owner IS NOT NULL AND lease_until > :now GROUP BY owner
      UNION ALL
      SELECT node_id, 0, 0, name FROM singleton WHERE held_until > :now
    ) AS held GROUP BY node_id ORDER BY node_id`,
)
const FORGET = command('nodes.forget', 'DELETE FROM node WHERE alive_until < :deadBefore')

// Nothing here needs to survive a power cut: it is said again in a moment.
export const nodeStore = defineStore<NodeStore>('nodes', {
  beat: relaxed(
    function* ({ id, now, aliveUntil, about, wanted = [] }) {
      const said = get(BEAT, { ...encode(node, { id, aliveUntil, about }), now })
      if (wanted.length === 0) return { time: toTime(yield* said), held: [] }
      const names = wanted.map(({ name, until }) => ({ name, until }))
      const [beat, taken] = yield* together(said, all(TAKE, { id, now, ...toRows('wanted', names) }))
      return { time: toTime(beat), held: taken.map(({ name }) => name) }
    },
    { isEssential: true, isTransaction: true },
  ),
  leave: relaxed(
    function* (nodeId) {
      yield* together(run(LEAVE_WORK, { nodeId }), run(LEAVE, { nodeId }))
    },
    { isEssential: true, isTransaction: true },
  ),
  list: read(function* () {
    return yield* all(LIST)
  }),
  holdings: report(function* (now) {
    const holdings = yield* all(HOLDINGS, { now })
    return holdings.map(({ names, ...held }) => ({ ...held, names: names.filter((name) => name !== null).sort() }))
  }),
  forgetNodes: chore(function* (deadBefore) {
    return yield* run(FORGET, { deadBefore })
  }),
})

function toTime(beat: { readonly time: number | null } | undefined): Date | null {
  return beat === undefined || beat.time === null ? null : new Date(beat.time)
}
