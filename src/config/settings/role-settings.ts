/** Settings of what one process of a service does, where several share a database. */
import type { SettingName } from '../env.ts'
import { readChoice, readList, readWordOr } from '../readers/read-choice.ts'
import { readDurationMs, SECOND } from '../readers/read-quantity.ts'
import type { Setting } from './setting.ts'

export const ROLES = ['all', 'api', 'worker'] as const

const POOL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

function readPool(text: string): string {
  if (POOL.test(text)) return text
  throw new Error(`has the item ${JSON.stringify(text)}, which names no pool; give default, or the id of a deployment`)
}

function readPools(text: string): readonly string[] {
  const pools = readList(readPool)(text)
  if (pools.length > 0) return pools
  throw new Error('names no pool; give for example default')
}

export const ROLE_SETTINGS = {
  role: {
    group: 'Service',
    argument: '<role>',
    fallback: 'all',
    read: readChoice(ROLES),
    help: 'What this process does. `api`: requests, and no engine. `worker`: engines, and no requests but `/healthz`, `/readyz` and `/metrics`. `all`: both. The first two need a `database`. See docs/scale-out.md.',
  },
  pools: {
    group: 'Jobs',
    argument: '<names>',
    fallback: 'all',
    read: readWordOr('all', null, readPools),
    help: 'The pools whose jobs this process runs, comma separated: `default`, and ids of deployments. A deployment with 0 workers is run by processes that name it here, each with its own `workers`. `all`: every pool.',
  },
  drainDelay: {
    group: 'Jobs',
    argument: '<duration>',
    fallback: '0s',
    read: readDurationMs({ min: 0, max: 600 * SECOND }),
    help: 'How long requests are still taken after SIGTERM, while `/readyz` already fails: the time that a load balancer needs to notice.',
  },
} as const satisfies Partial<Record<SettingName, Setting<unknown>>>
