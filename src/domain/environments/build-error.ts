/** What can be wrong with a request about builds, in the words that the surface has a code for. Other refusals are ServiceErrors. */
export type BuildRefusal =
  | 'invalid_request'
  | 'invalid_definition' // each fault with its field
  | 'not_enabled' // the operator has not named the account
  | 'not_found'
  | 'stale' // the build was changed since it was read
  | 'build_limit'
  | 'release_limit'
  | 'concurrency_limit' // too many artifacts of the account wait or are made; it passes
  | 'blob_limit'
  | 'build_in_use'
  | 'release_in_use'

export interface DefinitionFault {
  /** Such as `models[3].sourceUri`, `targets[0]` or `blob:<id>`. */
  readonly field: string
  readonly reason: string
}

export class BuildError extends Error {
  readonly refusal: BuildRefusal
  readonly faults: readonly DefinitionFault[]

  constructor(refusal: BuildRefusal, message: string, faults: readonly DefinitionFault[] = []) {
    super(message)
    this.name = 'BuildError'
    this.refusal = refusal
    this.faults = faults
  }
}

export function invalidDefinition(faults: readonly DefinitionFault[]): BuildError {
  const [first] = faults
  const rest = faults.length > 1 ? `, and ${faults.length - 1} more` : ''
  return new BuildError('invalid_definition', `${first.field} ${first.reason}${rest}`, faults)
}
