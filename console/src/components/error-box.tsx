/** A refusal or an outage, in the service's own words, with what can be done about it. */
import { useEffect, useState } from 'preact/hooks'
import type { ApiError } from '../api/client.ts'
import { CopyButton } from './copy-button.tsx'
import { Words } from './words.tsx'

interface ErrorBoxProps {
  readonly error: ApiError
  readonly onRetry?: () => void
}

export function ErrorBox({ error, onRetry }: ErrorBoxProps) {
  const seconds = useCountdown(error)
  return (
    <div class="error-box" role="alert">
      <p class="error-box-message">
        <Words text={error.message} />
      </p>
      <p class="dim">
        {error.status === null ? 'no answer; asked again by itself' : `${error.status} ${error.code}`}
        {seconds > 0 && ` · again in ${seconds} s`}
        {error.requestId !== null && (
          <>
            {' · request '}
            <code>{error.requestId}</code> <CopyButton text={error.requestId} label="Copy request id" />
          </>
        )}
      </p>
      {onRetry !== undefined && (
        <button type="button" class="button" onClick={onRetry} disabled={seconds > 0}>
          Try again
        </button>
      )}
    </div>
  )
}

/** What is left of `Retry-After`. */
function useCountdown(error: ApiError): number {
  const [left, setLeft] = useState(error.retryAfterSeconds ?? 0)
  useEffect(() => {
    setLeft(error.retryAfterSeconds ?? 0)
    const timer = setInterval(() => setLeft((before) => Math.max(0, before - 1)), 1000)
    return () => clearInterval(timer)
  }, [error])
  return left
}
