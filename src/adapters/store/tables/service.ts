/** What the service keeps about itself. */
import { integer, moment, table, text } from './table.ts'

export const meta = table('meta', ['key'], { key: text(), value: text() })

export const schemaMigration = table(
  'schema_migration',
  ['number'],
  { number: integer('integer'), name: text(), checksum: text(), appliedAt: moment() },
  { staysFor: 'belongs to the schema of one store' },
)
