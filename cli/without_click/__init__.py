"""What short commands do, which programs call again and again.  They do without click: importing it
takes as long as all that they need.
"""
