/** Below a form: run it, what it will cost, the form as JSON, and whatever else the page offers. */
import type { ComponentChildren } from 'preact'
import { Icon } from '../components/icon.tsx'
import { useKeys } from '../keys/keys.ts'

interface RunBarProps {
  /** On the button: `Run`, `Run 12 jobs`. */
  readonly word: string
  readonly isReady: boolean
  readonly isBusy: boolean
  readonly onRun: () => void
  /** Ends what is under way; left out: it cannot be ended from here. */
  readonly onStop?: (() => void) | undefined
  readonly isJson: boolean
  readonly onJson: (isJson: boolean) => void
  readonly price: string
  readonly children: ComponentChildren
}

export function RunBar(props: RunBarProps) {
  const { word, isReady, isBusy, onRun, onStop, isJson, onJson, price, children } = props
  useKeys({
    'mod+enter': () => {
      if (isReady && !isBusy) onRun()
      return true
    },
  })
  return (
    <div class="run-bar">
      <div class="run-deeds">
        <button type="button" class="button primary" disabled={isBusy || !isReady} onClick={onRun}>
          <Icon name="play" /> {isBusy ? 'Running…' : word} <kbd aria-hidden="true">⌘↵</kbd>
        </button>
        {isBusy && onStop !== undefined && (
          <button type="button" class="button" onClick={onStop}>
            Stop waiting
          </button>
        )}
        <span class="price" role="status">
          {price}
        </span>
      </div>
      <div class="run-more">
        <button type="button" class="button" aria-pressed={isJson} onClick={() => onJson(!isJson)}>
          {isJson ? 'Form' : 'JSON'}
        </button>
        {children}
      </div>
    </div>
  )
}
