/** What a job keeps of the way it was submitted beyond what it needs to run. Never a credential. */
export interface Submission {
  /** The place in the queue that the caller asked for or was given, as the text of a JSON number. */
  readonly number: string
  /** Whoever is to be told of the run; null: everybody of the account. */
  readonly clientId: string | null
  readonly workflowId: string | null
  /** The caller's own data without credentials, as JSON text. */
  readonly extraData: string
  /** Output nodes that run. */
  readonly outputs: readonly string[]
  /** The whole graph as JSON text when only a part of it runs; null when all of it does. */
  readonly wholeWorkflow: string | null
}
