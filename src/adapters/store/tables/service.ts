/** What the service keeps about itself. */
import type { PauseScope } from '../../../domain/jobs/queue/queue-store.ts'
import { integer, moment, nullable, table, text } from './table.ts'

export const meta = table('meta', ['key'], { key: text(), value: text() })

/** Who claims nothing. */
export const queuePause = table('queue_pause', ['scope', 'name'], {
  scope: text<PauseScope>(),
  name: text(),
  reason: nullable(text()),
  pausedAt: moment(),
})

export const schemaMigration = table(
  'schema_migration',
  ['number'],
  { number: integer('integer'), name: text(), checksum: text(), appliedAt: moment() },
  { staysFor: 'belongs to the schema of one store' },
)
