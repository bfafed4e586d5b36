// The effect of chaos: rates from the counters that the daemon sends twice a second.
'use strict'

{
  const card = document.getElementById('figures')
  const show = (id, text) => { document.getElementById(id).textContent = text }
  const most = 240
  const times = []
  const faults = []
  const share = []
  let last = null
  let plot = null
  // What the shares before and since the last switch are made of.
  let sums = { exchanges: 0, failed: 0 }
  let switchedAt = null

  const percent = sums => sums.exchanges ? `${(100 * sums.failed / sums.exchanges).toFixed(1)} %` : '–'

  const draw = () => {
    const style = getComputedStyle(document.documentElement)
    const color = name => style.getPropertyValue(name).trim()
    const target = document.getElementById('plot')
    const axis = { stroke: color('--soft'), grid: { stroke: color('--line'), width: 1 }, ticks: { stroke: color('--line') } }
    plot?.destroy()
    plot = new uPlot({
      width: target.clientWidth,
      height: 220,
      cursor: { show: false },
      legend: { show: false },
      scales: { x: { range: (_, low, high) => high ? [Math.min(low, high - 20), high] : [0, 20] }, y: { range: (_, low, high) => [0, Math.max(high, 1)] }, share: { range: [0, 100] } },
      axes: [
        { ...axis, values: (_, splits) => splits.map(at => new Date(at * 1000).toISOString().slice(11, 19)), space: 80 },
        { ...axis, label: 'faults a second', labelGap: 0, stroke: color('--first') },
        { ...axis, scale: 'share', side: 1, label: 'error share, %', stroke: color('--second'), grid: { show: false } }
      ],
      series: [
        {},
        { stroke: color('--first'), width: 2, fill: color('--first') + '22', points: { show: false } },
        { scale: 'share', stroke: color('--second'), width: 2, dash: [6, 4], points: { show: false } }
      ],
      hooks: {
        draw: [({ ctx, bbox, valToPos }) => {
          if (switchedAt === null || switchedAt < times[0]) return
          const x = plot.valToPos(switchedAt, 'x', true)
          ctx.save()
          ctx.strokeStyle = color('--soft')
          ctx.setLineDash([3, 3])
          ctx.beginPath()
          ctx.moveTo(x, bbox.top)
          ctx.lineTo(x, bbox.top + bbox.height)
          ctx.stroke()
          ctx.restore()
        }]
      }
    }, [times, faults, share], target)
  }

  const take = now => {
    const at = performance.timeOrigin / 1000 + performance.now() / 1000
    if (last && now.exchanges >= last.exchanges) {
      const seconds = Math.max(at - last.at, 0.05)
      const rate = name => (now[name] - last[name]) / seconds
      const exchanges = now.exchanges - last.exchanges
      const failed = now.failed - last.failed
      if (now.in_force !== last.in_force) {
        show('before', percent(sums))
        sums = { exchanges: 0, failed: 0 }
        switchedAt = at
      }
      sums.exchanges += exchanges
      sums.failed += failed
      show('exchanges', rate('exchanges').toFixed(1))
      show('faults', rate('faults').toFixed(1))
      show('since', percent(sums))
      times.push(at)
      faults.push(rate('faults'))
      share.push(exchanges ? 100 * failed / exchanges : null)
      if (times.length > most) for (const list of [times, faults, share]) list.shift()
      plot?.setData([times, faults, share])
    }
    last = { ...now, at }
  }

  draw()
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw)
  addEventListener('resize', () => plot.setSize({ width: document.getElementById('plot').clientWidth, height: 220 }))
  new EventSource(card.dataset.source).addEventListener('message', event => take(JSON.parse(event.data)))
}
