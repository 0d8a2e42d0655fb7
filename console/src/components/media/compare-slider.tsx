/** Two pictures one above the other; the slider says how much of the first is seen. */
import { useState } from 'preact/hooks'
import { toMarkedText } from '../../text/marks.ts'

interface CompareSliderProps {
  readonly a: { readonly url: string; readonly name: string }
  readonly b: { readonly url: string; readonly name: string }
}

export function CompareSlider({ a, b }: CompareSliderProps) {
  const [share, setShare] = useState(50)
  return (
    <div class="compare">
      <div class="compare-pictures">
        <img src={b.url} alt={toMarkedText(b.name)} />
        <img src={a.url} alt={toMarkedText(a.name)} style={{ clipPath: `inset(0 ${100 - share}% 0 0)` }} />
        <div class="compare-line" style={{ left: `${share}%` }} aria-hidden="true" />
      </div>
      <input
        type="range"
        min={0}
        max={100}
        value={share}
        aria-label="How much of the first picture is seen"
        onInput={(event) => setShare(Number(event.currentTarget.value))}
      />
    </div>
  )
}
