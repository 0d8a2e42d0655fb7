/** Which processes live, and which of them does the work that only one may do. */
import type { DatabaseSync } from 'node:sqlite'
import type { NodeAbout, NodeBeat, NodeHoldings, ServiceNode } from '../../../../../domain/service-nodes/node-store.ts'
import { prepareRows } from '../statement.ts'

type NodeRow = [id: string, startedAt: number, seenAt: number, aliveUntil: number, about: string]

interface BeatInput {
  readonly id: string
  readonly now: number
  readonly aliveUntil: number
  readonly about: string
  readonly wanted: readonly { readonly name: string; readonly until: number }[]
}

export function toBeatInput({ id, now, aliveUntil, about, wanted = [] }: NodeBeat): BeatInput {
  return {
    ...{ id, now: now.getTime(), aliveUntil: aliveUntil.getTime(), about: JSON.stringify(about) },
    wanted: wanted.map(({ name, until }) => ({ name, until: until.getTime() })),
  }
}

/** Returns which of the wanted names the process holds now. */
export function prepareBeatNode(database: DatabaseSync): (input: BeatInput) => string[] {
  const upsert = database.prepare(`
    INSERT INTO node (id, started_at, seen_at, alive_until, about) VALUES (?1, ?2, ?2, ?3, ?4)
    ON CONFLICT (id) DO UPDATE SET seen_at = ?2, alive_until = ?3, about = ?4`)
  const take = database.prepare(`
    INSERT INTO singleton (name, node_id, held_since, held_until) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (name) DO UPDATE SET node_id = ?2, held_until = ?4,
      held_since = CASE WHEN node_id = ?2 AND held_until > ?3 THEN held_since ELSE ?3 END
    WHERE node_id = ?2 OR held_until <= ?3`)
  return ({ id, now, aliveUntil, about, wanted }) => {
    upsert.run(id, now, aliveUntil, about)
    return wanted.flatMap(({ name, until }) => (take.run(name, id, now, until).changes === 1 ? [name] : []))
  }
}

export function prepareLeaveNode(database: DatabaseSync): (nodeId: string) => void {
  const removeNode = database.prepare('DELETE FROM node WHERE id = ?')
  const freeSingletons = database.prepare('DELETE FROM singleton WHERE node_id = ?')
  return (nodeId) => {
    freeSingletons.run(nodeId)
    removeNode.run(nodeId)
  }
}

export function prepareListNodes(database: DatabaseSync): (input: null) => ServiceNode[] {
  const select = prepareRows<NodeRow>(
    database,
    'SELECT id, started_at, seen_at, alive_until, about FROM node ORDER BY id',
  )
  return () =>
    select.all().map(([id, startedAt, seenAt, aliveUntil, about]) => ({
      id,
      startedAt: new Date(startedAt),
      seenAt: new Date(seenAt),
      aliveUntil: new Date(aliveUntil),
      about: JSON.parse(about) as NodeAbout,
    }))
}

export function prepareHoldings(database: DatabaseSync): (now: number) => NodeHoldings[] {
  const select = prepareRows<[nodeId: string, jobs: number, calls: number, names: string]>(
    database,
    `SELECT node_id, sum(jobs), sum(calls), json_group_array(name) FILTER (WHERE name IS NOT NULL)
     FROM (
       SELECT worker_id AS node_id, count(*) AS jobs, 0 AS calls, NULL AS name FROM job INDEXED BY job_lease
       WHERE status IN ('running', 'canceling') AND worker_id IS NOT NULL GROUP BY worker_id
       UNION ALL
       SELECT owner, 0, count(*), NULL FROM router_call
       WHERE state = 'running' AND owner IS NOT NULL AND lease_until > ?1 GROUP BY owner
       UNION ALL
       SELECT node_id, 0, 0, name FROM singleton WHERE held_until > ?1
     ) GROUP BY node_id ORDER BY node_id`,
  )
  return (now) =>
    select.all(now).map(([nodeId, jobs, calls, names]) => ({
      nodeId,
      jobs,
      calls,
      names: (JSON.parse(names) as string[]).sort(),
    }))
}

export function prepareForgetNodes(database: DatabaseSync): (deadBefore: number) => number {
  const remove = database.prepare('DELETE FROM node WHERE alive_until < ?')
  return (deadBefore) => Number(remove.run(deadBefore).changes)
}
