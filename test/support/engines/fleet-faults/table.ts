/** Every fault of the fake server at every point of a run's life. */
import { FILE_ROWS } from './file-rows.ts'
import { LOOK_ROWS } from './look-rows.ts'
import type { FaultRow } from './row.ts'
import { RUN_ROWS } from './run-rows.ts'
import { SERVER_ROWS } from './server-rows.ts'
import { SUBMIT_ROWS } from './submit-rows.ts'

export const FAULT_TABLE: readonly FaultRow[] = [
  ...LOOK_ROWS,
  ...SUBMIT_ROWS,
  ...RUN_ROWS,
  ...FILE_ROWS,
  ...SERVER_ROWS,
]
