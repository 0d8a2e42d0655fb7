/** How what is shown stands to what is: live, paused, coming back, or without a network. */
import { useKeys } from '../../keys/keys.ts'
import { isPaused, type LiveWord, liveWord, setPaused } from '../../state/live/live.ts'

const TITLES: Readonly<Record<LiveWord, string>> = {
  live: 'Changes are shown as they happen. Press to pause.',
  paused: 'Nothing changes by itself. Press to go on.',
  reconnecting: 'The connection is being made again; meanwhile the page asks every ten seconds.',
  offline: 'This browser has no network.',
}

export function LiveDot() {
  const { value: word } = liveWord
  useKeys({
    '.': () => {
      setPaused(!isPaused.value)
      return true
    },
  })
  return (
    <button
      type="button"
      class="live-dot"
      data-live={word}
      title={TITLES[word]}
      aria-pressed={word === 'paused'}
      onClick={() => setPaused(!isPaused.value)}
    >
      <span class="dot" aria-hidden="true" />
      <span role="status">{word}</span>
    </button>
  )
}
