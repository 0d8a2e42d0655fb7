/** What to do about a failure, by its code. A code that is not here has no advice: its message says what there is to say. */
const STEPS: Readonly<Record<string, string>> = {
  out_of_memory: 'a smaller picture, tile or batch, or an engine with more memory.',
  node_execution_error: 'look at this node’s inputs in the graph, change them, and run it again.',
  execution_error: 'look at this node’s inputs in the graph, change them, and run it again.',
  machine_fault: 'run it again when the engine is mended: its disk, driver or a library failed, not the workflow.',
  timeout: 'fewer steps or a smaller picture; an operator can allow more time.',
  worker_lost: 'run it again: the process that ran it went away three times, which is rarely the workflow’s doing.',
  engine_lost: 'run it again: the engine went away while it ran.',
  credentials_lost: 'submit it again with its credentials: they are kept in memory only and a restart took them.',
  invalid_workflow: 'open the workflow and correct what the message names.',
  missing_weights: 'install the weights on an engine, or choose others.',
  insufficient_credits: 'add credit to the account, then run it again.',
}

export function nextStep(code: string): string | null {
  return STEPS[code] ?? null
}
