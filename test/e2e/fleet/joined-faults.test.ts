/** The fault matrix of the fleet once more, with the engines at a worker that joined the service over HTTP. */
import { describe, test } from 'node:test'
import { runRow } from '../../support/engines/fleet-faults/run-row.ts'
import { FAULT_TABLE } from '../../support/engines/fleet-faults/table.ts'

describe('the fault matrix over a joined worker', { concurrency: 5 }, () => {
  for (const row of FAULT_TABLE) test(row.name, () => runRow(row, { isJoined: true }))
})
