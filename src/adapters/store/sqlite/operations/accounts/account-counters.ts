/** The counts of jobs by status that follow from the counters of accounts. */
import type { DatabaseSync } from 'node:sqlite'
import type { JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { countByStatus } from '../../../stores/account-store.ts'
import { runOn } from '../../shared-stores.ts'
import { openStatements } from '../../statements.ts'

export function prepareCountByStatus(database: DatabaseSync): (input: null) => Record<JobStatus, number> {
  const statements = openStatements(database)
  return () => runOn(statements, countByStatus())
}
