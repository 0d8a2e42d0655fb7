/**
 * The fault matrix of the fleet once more, with the engines at a worker that joined the service over HTTP. What a fault does to a run is the
 * engine's part and the same there (faults.test.ts): one row stands for all that end alike, by the same way.
 */
import { endOf, type FaultRow, PHASES } from '../../support/engines/fleet-faults/row.ts'
import { testRows } from '../../support/engines/fleet-faults/run-row.ts'
import { FAULT_TABLE } from '../../support/engines/fleet-faults/table.ts'

/** What reaches the service of a row: how it ends at each point, and what was asked of the engine meanwhile. */
function kindOf(row: FaultRow): string {
  const { since, isCanceled, isKept, isEverywhere, isUnspent, isDeath, graph, quarantines } = row
  const asked = [since, isCanceled, isKept, isEverywhere, isUnspent, isDeath, graph, quarantines]
  return JSON.stringify([PHASES.map((phase) => endOf(row, phase)), asked])
}

const ROWS = [...new Map(FAULT_TABLE.map((row) => [kindOf(row), row])).values()]

testRows('the fault matrix over a joined worker', ROWS, { isJoined: true })
