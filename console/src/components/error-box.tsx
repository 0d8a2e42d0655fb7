/** A refusal or an outage, in the service's own words, with what can be done about it. */
import type { ApiError } from '../api/client.ts'

interface ErrorBoxProps {
  readonly error: ApiError
  readonly onRetry?: () => void
}

export function ErrorBox({ error, onRetry }: ErrorBoxProps) {
  return (
    <div class="error-box" role="alert">
      <p class="error-box-message">{error.message}</p>
      <p class="dim">
        {error.status === null ? 'no answer' : `${error.status} ${error.code}`}
        {error.requestId !== null && (
          <>
            {' · request '}
            <code>{error.requestId}</code>
          </>
        )}
      </p>
      {onRetry !== undefined && (
        <button type="button" class="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}
