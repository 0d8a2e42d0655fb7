/** What the provider answered to a submit, for callers who follow the task themselves. */
export interface ToldTask {
  /** As `toTaskName` writes it. */
  readonly task: string
  /** JSON, as the caller gets it. */
  readonly answer: string
}

/** Names a task among those of all providers, which choose their names by themselves. */
export function toTaskName(provider: string, task: string): string {
  return `${provider}/${task}`
}
