/** The processes of the service, what only one of them does, and the engines that they drive. */
import type { EngineWill } from '../../../domain/engine/directory/engine-registry.ts'
import type { EngineState } from '../../../domain/engine/fleet/engine-status.ts'
import type { NodeAbout } from '../../../domain/service-nodes/node-store.ts'
import { flag, integer, json, moment, nullable, table, text } from './table.ts'

const PROCESS = 'describes running processes'

export const node = table(
  'node',
  ['id'],
  { id: text(), startedAt: moment(), seenAt: moment(), aliveUntil: moment(), about: json<NodeAbout>() },
  { staysFor: PROCESS },
)

export const singleton = table(
  'singleton',
  ['name'],
  { name: text(), nodeId: text(), heldSince: moment(), heldUntil: moment() },
  { staysFor: PROCESS },
)

export const engine = table('engine', ['id'], {
  id: text(),
  nodeId: text(),
  heldUntil: moment(),
  isShared: flag(),
  catalogHash: nullable(text()),
  state: text<EngineState>(),
  concurrency: integer('integer'),
  about: text(),
  seenAt: moment(),
  will: text<EngineWill>(),
  willNumber: integer('integer'),
})

export const engineCatalog = table('engine_catalog', ['hash'], { hash: text(), text: text() })
