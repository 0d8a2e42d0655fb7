/** Every way in which a change of a deployment is refused, as one closed set without any HTTP in it. */
export type DeployRefusal =
  | 'invalid_request'
  | 'invalid_name'
  | 'compute_unavailable' // this class in this region, now
  | 'not_enabled' // the operator has not allowed this account to deploy
  | 'not_found'
  | 'release_not_deployable'
  | 'name_taken'
  | 'immutable_compute' // class and region change only while it is stopped
  | 'deleted'
  | 'conflict' // not in its present state
  | 'stale_revision'
  | 'no_earlier_revision'
  | 'pending_update_exists'
  | 'no_pending_update'
  | 'release_deleted'
  | 'too_many'

/** `message` is safe to show to the caller. */
export class DeployError extends Error {
  readonly refusal: DeployRefusal

  constructor(refusal: DeployRefusal, message: string) {
    super(message)
    this.name = 'DeployError'
    this.refusal = refusal
  }
}

export function noSuchDeployment(): DeployError {
  return new DeployError('not_found', 'there is no deployment with this id')
}

export function conflict(message: string): DeployError {
  return new DeployError('conflict', message)
}
